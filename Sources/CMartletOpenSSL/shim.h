#ifndef MARTLET_COPENSSL_SHIM_H
#define MARTLET_COPENSSL_SHIM_H

/* OpenSSL 3, and static inline functions for what its headers offer as macros only: Swift imports no macros
   with arguments. */
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <strings.h>

/* Contexts */

static inline int martlet_ctx_set_min_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int martlet_ctx_set_max_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

static inline void martlet_ctx_set_mode(SSL_CTX *context) {
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE
                                  | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static inline void martlet_ctx_set_common_options(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_LEGACY_SERVER_CONNECT);
}

static inline void martlet_ctx_set_no_ticket(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
}

/* Sessions are handed to the callback alone; OpenSSL keeps none itself. */
static inline void martlet_ctx_set_session_cache(SSL_CTX *context, int is_on) {
    SSL_CTX_set_session_cache_mode(
        context, is_on ? SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL : SSL_SESS_CACHE_OFF);
}

static inline void martlet_ctx_set_read_ahead(SSL_CTX *context, int is_on) {
    SSL_CTX_set_read_ahead(context, is_on);
}

static inline int martlet_ctx_add1_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline int martlet_ctx_set1_curves(SSL_CTX *context, const char *list) {
    return (int)SSL_CTX_set1_curves_list(context, list);
}

/* Connections */

static inline int martlet_ssl_set_server_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

/* Has the handshake stop after the certificate's callback, which is called again when the handshake goes on. */
static inline int martlet_ssl_retry_verify(SSL *ssl) { return SSL_set_retry_verify(ssl); }

/* BIO */

static inline void martlet_bio_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

static inline void martlet_bio_retry_write(BIO *bio) { BIO_set_retry_write(bio); }

static inline void martlet_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }

static inline long martlet_bio_memory(BIO *bio, char **data) { return BIO_get_mem_data(bio, data); }

static inline int martlet_bio_rewind(BIO *bio) { return (int)BIO_reset(bio); }

/* Errors */

static inline int martlet_err_unsupported(void) { return ERR_R_UNSUPPORTED; }

/* Adds an entry to the error queue of the thread. */
static inline void martlet_err_add(int library, int reason) {
    ERR_new();
    ERR_set_error(library, reason, NULL);
}

/* Keys and certificates */

/* 1 when it is written. */
static inline int martlet_print_name(BIO *bio, const X509_NAME *name) {
    return X509_NAME_print_ex(bio, name, 0, XN_FLAG_RFC2253) >= 0;
}

/* A chain, as stacks of other types are not to be mixed up with it. */
static inline int martlet_chain_count(const STACK_OF(X509) *chain) { return sk_X509_num(chain); }

static inline X509 *martlet_chain_certificate(const STACK_OF(X509) *chain, int index) {
    return sk_X509_value(chain, index);
}

/* The bits of an RSA key, else 0. */
static inline int martlet_rsa_bits(const EVP_PKEY *key) {
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA ? EVP_PKEY_get_bits(key) : 0;
}

/* Whether a name constraint is malformed: no subtree at all, a wildcard, an address without a proper mask. */
static inline int martlet_subtrees_are_malformed(const STACK_OF(GENERAL_SUBTREE) *trees) {
    for (int i = 0; i < sk_GENERAL_SUBTREE_num(trees); i++) {
        const GENERAL_NAME *base = sk_GENERAL_SUBTREE_value(trees, i)->base;
        if (base->type == GEN_DNS) {
            const unsigned char *text = ASN1_STRING_get0_data(base->d.dNSName);
            for (int j = 0; j < ASN1_STRING_length(base->d.dNSName); j++) {
                if (text[j] == '*' || text[j] == 0 || text[j] >= 0x80) return 1;
            }
        } else if (base->type == GEN_IPADD) {
            int count = ASN1_STRING_length(base->d.iPAddress), ended = 0;
            const unsigned char *bytes = ASN1_STRING_get0_data(base->d.iPAddress);
            if (count != 8 && count != 32) return 1;
            for (int bit = 0; bit < count * 4; bit++) {
                int is_set = bytes[count / 2 + bit / 8] >> (7 - bit % 8) & 1;
                if (is_set && ended) return 1;
                if (!is_set) ended = 1;
            }
        }
    }
    return 0;
}

static inline int martlet_name_constraints_are_malformed(X509 *certificate) {
    int critical = 0, result;
    NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(certificate, NID_name_constraints, &critical, NULL);
    if (constraints == NULL) return critical != -1;
    result = sk_GENERAL_SUBTREE_num(constraints->permittedSubtrees) <= 0
             && sk_GENERAL_SUBTREE_num(constraints->excludedSubtrees) <= 0;
    result = result || martlet_subtrees_are_malformed(constraints->permittedSubtrees)
             || martlet_subtrees_are_malformed(constraints->excludedSubtrees);
    NAME_CONSTRAINTS_free(constraints);
    return result;
}

/* Whether a wildcard `*.x` among a certificate's names stands for a host that an authority must not sign for: an excluded
   domain with one label more than x. OpenSSL finds x itself, and the domains above it. */
static inline int martlet_has_excluded_wildcard(X509 *certificate, X509 *authority) {
    NAME_CONSTRAINTS *constraints = X509_get_ext_d2i(authority, NID_name_constraints, NULL, NULL);
    if (constraints == NULL) return 0;
    GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int result = 0;
    for (int i = 0; i < sk_GENERAL_SUBTREE_num(constraints->excludedSubtrees) && !result; i++) {
        const GENERAL_NAME *base = sk_GENERAL_SUBTREE_value(constraints->excludedSubtrees, i)->base;
        if (base->type != GEN_DNS) continue;
        const char *domain = (const char *)ASN1_STRING_get0_data(base->d.dNSName);
        int count = ASN1_STRING_length(base->d.dNSName), label = 0;
        while (label < count && domain[label] != '.') label++;
        if (label == 0 || label == count) continue;
        for (int j = 0; j < sk_GENERAL_NAME_num(names) && !result; j++) {
            const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, j);
            if (name->type != GEN_DNS) continue;
            const char *text = (const char *)ASN1_STRING_get0_data(name->d.dNSName);
            int length = ASN1_STRING_length(name->d.dNSName);
            result = length > 2 && text[0] == '*' && length - 1 == count - label
                     && strncasecmp(text + 1, domain + label, (size_t)(length - 1)) == 0;
        }
    }
    GENERAL_NAMES_free(names);
    NAME_CONSTRAINTS_free(constraints);
    return result;
}

static inline EVP_PKEY *martlet_generate_p256(void) { return EVP_EC_gen("P-256"); }

static inline EVP_PKEY *martlet_generate_rsa(int bits) { return EVP_RSA_gen((size_t)bits); }

static inline int martlet_store_count(X509_STORE *store) {
    return sk_X509_OBJECT_num(X509_STORE_get0_objects(store));
}

static inline X509 *martlet_store_certificate(X509_STORE *store, int index) {
    return X509_OBJECT_get0_X509(sk_X509_OBJECT_value(X509_STORE_get0_objects(store), index));
}

#endif
