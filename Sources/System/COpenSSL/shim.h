#pragma once
#include <openssl/ssl.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

/* What OpenSSL offers as macros only. */

/* TLS 1.3 and nothing else; writes may be partial and repeated from another address; idle connections hold no buffers;
   no renegotiation, no resumption (a resumed session would outlive a change of the certificates). */
static inline int openssl_context_prepare(SSL_CTX *context) {
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1) return 0;
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, 64 * 1024);
  return 1;
}

static inline int openssl_set_server_name(SSL *ssl, const char *name) { return (int)SSL_set_tlsext_host_name(ssl, name); }

/* An encrypted key must be an error, never a question on the terminal. */
static inline int openssl_no_password(char *buffer, int size, int writing, void *data) {
  (void)buffer, (void)size, (void)writing, (void)data;
  return 0;
}
static inline void openssl_refuse_passwords(SSL_CTX *context) { SSL_CTX_set_default_passwd_cb(context, openssl_no_password); }

/* The number of URI names among the certificate's subject alternative names; the first is copied to `out`, cut to
   `capacity` and closed by NUL. -1 when it does not fit or holds a NUL. */
static inline int openssl_uri_names(const X509 *certificate, char *out, size_t capacity) {
  GENERAL_NAMES *names = (GENERAL_NAMES *)X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
  int count = 0;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
    const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    if (count++ > 0) continue;
    const unsigned char *text = ASN1_STRING_get0_data(name->d.uniformResourceIdentifier);
    size_t length = (size_t)ASN1_STRING_length(name->d.uniformResourceIdentifier);
    int bad = length >= capacity;
    for (size_t k = 0; !bad && k < length; k++) {
      out[k] = (char)text[k];
      bad = text[k] == 0;
    }
    if (bad) {
      count = -1;
      break;
    }
    out[length] = 0;
  }
  GENERAL_NAMES_free(names);
  return count;
}
