#ifndef MARTLET_CZSTD_SHIM_H
#define MARTLET_CZSTD_SHIM_H

#include <zstd.h>
#include <zstd_errors.h>

#endif
