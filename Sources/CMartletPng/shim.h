#ifndef MARTLET_CPNG_SHIM_H
#define MARTLET_CPNG_SHIM_H

#include <png.h>
#include <string.h>

// Macros that Swift does not see.
static inline void martlet_png_prepare(png_image *image) {
    memset(image, 0, sizeof *image);
    image->version = PNG_IMAGE_VERSION;
}

static inline void martlet_png_ask_for_rgba(png_image *image) {
    image->format = PNG_FORMAT_RGBA;
}

// An array of characters, which Swift would see as a tuple.
static inline const char *martlet_png_message(const png_image *image) {
    return image->message;
}

#endif
