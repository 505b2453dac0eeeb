#ifndef MARTLET_CEXPAT_SHIM_H
#define MARTLET_CEXPAT_SHIM_H

/* expat.h shows the limits on entity expansion only where the macros of expat's own build are defined. */
#ifndef XML_DTD
#define XML_DTD 1
#endif
#include <expat.h>
#include <stdlib.h>
#include <string.h>

/* A parser with namespaces whose memory comes from these functions. */
static inline XML_Parser martlet_expat_create(const XML_Char *encoding, XML_Char separator,
                                              void *(*allocate)(size_t), void *(*reallocate)(void *, size_t)) {
    const XML_Memory_Handling_Suite memory = {allocate, reallocate, free};
    const XML_Char separators[2] = {separator, 0};
    return XML_ParserCreate_MM(encoding, &memory, separators);
}

/* Since 2.6.0 expat postpones the second look at an unfinished token by itself, at the cost of events that come late.
   MartletXML bounds that work with a budget of its own, for older versions too. */
static inline void martlet_expat_disable_reparse_deferral(XML_Parser parser) {
#if XML_MAJOR_VERSION > 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION >= 6)
    XML_SetReparseDeferralEnabled(parser, XML_FALSE);
#else
    (void)parser;
#endif
}

#endif
