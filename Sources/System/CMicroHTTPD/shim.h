#pragma once
#include <microhttpd.h>

/* MHD_start_daemon is variadic, which Swift cannot call. The daemon has no thread of its own: its epoll descriptor is
   watched from outside. `unescape` leaves escapes alone, because the caller decodes. */
static inline size_t microhttpd_keep_escapes(void *data, struct MHD_Connection *connection, char *text) {
  (void)data, (void)connection;
  size_t length = 0;
  while (text[length]) length++;
  return length;
}

static inline struct MHD_Daemon *microhttpd_start(
    int listening, void *context, void *(*begin)(void *context, const char *target, struct MHD_Connection *connection),
    MHD_AccessHandlerCallback handle, MHD_RequestCompletedCallback completed, unsigned connections_max,
    unsigned idle_seconds, size_t connection_bytes) {
  return MHD_start_daemon(
      MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, context,
      MHD_OPTION_LISTEN_SOCKET, listening,
      MHD_OPTION_URI_LOG_CALLBACK, begin, context,
      MHD_OPTION_NOTIFY_COMPLETED, completed, context,
      MHD_OPTION_UNESCAPE_CALLBACK, &microhttpd_keep_escapes, NULL,
      MHD_OPTION_CONNECTION_LIMIT, connections_max,
      MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes,
      MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_END);
}

/* -1 when the daemon has none. */
static inline int microhttpd_epoll(struct MHD_Daemon *daemon) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
  return info ? info->epoll_fd : -1;
}

static inline const struct sockaddr *microhttpd_peer(struct MHD_Connection *connection) {
  const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info ? info->client_addr : NULL;
}
