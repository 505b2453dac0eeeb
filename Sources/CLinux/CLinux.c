/* Header-only target: SwiftPM wants one source file. */
#include "CLinux.h"
