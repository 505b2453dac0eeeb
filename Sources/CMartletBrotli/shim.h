#ifndef MARTLET_CBROTLI_SHIM_H
#define MARTLET_CBROTLI_SHIM_H

#include <brotli/decode.h>
#include <brotli/encode.h>

#endif
