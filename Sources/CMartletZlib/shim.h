#ifndef MARTLET_CZLIB_SHIM_H
#define MARTLET_CZLIB_SHIM_H

#include <zlib.h>

/* inflateInit2 and deflateInit2 are macros, which Swift does not import. */
static inline int martlet_inflate_init2(z_streamp stream, int window_bits) {
    return inflateInit2(stream, window_bits);
}

static inline int martlet_deflate_init2(z_streamp stream, int level, int window_bits) {
    return deflateInit2(stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
}

#endif
