#pragma once
#include <string.h>
#include <zlib.h>

/* What zlib offers as macros only: streams in gzip's format. Z_OK or an error. */

static inline int zlib_begin_inflate(z_stream *stream) {
  memset(stream, 0, sizeof *stream);
  return inflateInit2(stream, 15 + 16);
}

static inline int zlib_begin_deflate(z_stream *stream) {
  memset(stream, 0, sizeof *stream);
  return deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}
