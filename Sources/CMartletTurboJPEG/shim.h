#ifndef MARTLET_CTURBOJPEG_SHIM_H
#define MARTLET_CTURBOJPEG_SHIM_H

#include <turbojpeg.h>

#endif
