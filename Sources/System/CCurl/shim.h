#pragma once
#include <curl/curl.h>

/* curl_easy_setopt and curl_easy_getinfo take variable arguments, which Swift cannot call: one typed function for
   each kind of argument. */

typedef size_t (*curl_bytes_callback)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode curl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode curl_set_text(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode curl_set_list(CURL *handle, CURLoption option, struct curl_slist *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode curl_set_mime(CURL *handle, curl_mime *value) {
  return curl_easy_setopt(handle, CURLOPT_MIMEPOST, value);
}

static inline CURLcode curl_set_write(CURL *handle, curl_bytes_callback callback, void *context) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, callback);
  return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
}

static inline CURLcode curl_set_header(CURL *handle, curl_bytes_callback callback, void *context) {
  CURLcode code = curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, callback);
  return code != CURLE_OK ? code : curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
}

static inline long curl_response_code(CURL *handle) {
  long code = 0;
  return curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &code) == CURLE_OK ? code : 0;
}
