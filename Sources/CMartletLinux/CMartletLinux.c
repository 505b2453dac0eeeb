/* SwiftPM requires a source file in a target of C headers. */
#include "CMartletLinux.h"
