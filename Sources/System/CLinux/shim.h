#pragma once
/* No _GNU_SOURCE here: it changes the layout names of types that Swift's own Glibc module has already fixed. */
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <fcntl.h>
#include <errno.h>
#include <unistd.h>
#include <signal.h>
#include <sys/un.h>
#include <pthread.h>
#include <time.h>
#include <stdlib.h>
#include <string.h>

/* glibc declares accept4 only for _GNU_SOURCE, which the importer may have settled before this header. */
extern int accept4(int fd, struct sockaddr *restrict addr, socklen_t *restrict length, int flags);

static const uint32_t linux_epoll_in = EPOLLIN;
static const uint32_t linux_epoll_out = EPOLLOUT;
static const uint32_t linux_epoll_err = EPOLLERR;
static const uint32_t linux_epoll_hup = EPOLLHUP;
static const uint32_t linux_epoll_et = EPOLLET;

static inline int linux_epoll_ctl(int epoll, int op, int fd, uint32_t events, uint64_t data) {
  struct epoll_event event;
  event.events = events;
  event.data.u64 = data;
  return epoll_ctl(epoll, op, fd, &event);
}

static inline uint64_t linux_epoll_data(const struct epoll_event *event) { return event->data.u64; }
static inline uint32_t linux_epoll_events(const struct epoll_event *event) { return event->events; }

static const int linux_accept_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
static const int linux_stream_socket = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
static const int linux_send_flags = MSG_NOSIGNAL;

/* A peer that goes away must be an error of send(), never a signal (OpenSSL's socket BIO cannot ask for that). */
static inline void linux_ignore_broken_pipe(void) { signal(SIGPIPE, SIG_IGN); }

/* The kernel keeps 15 bytes of a thread's name. */
extern int pthread_setname_np(pthread_t thread, const char *name);
static inline void linux_set_thread_name(const char *name) {
  char text[16];
  strncpy(text, name, sizeof text - 1);
  text[sizeof text - 1] = 0;
  pthread_setname_np(pthread_self(), text);
}
