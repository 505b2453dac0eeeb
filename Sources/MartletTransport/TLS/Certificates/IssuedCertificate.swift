import COpenSSL

/// A throw-away certificate with its private key.
package struct IssuedCertificate: Hashable, Sendable {
    /// The certificate, followed by those of the authorities between it and the root, in PEM.
    package let certificateChainPEM: String
    /// The private key in PEM (PKCS#8), not encrypted.
    package let privateKeyPEM: String

    /// As what a connection shows.
    package var identity: TLSIdentity {
        TLSIdentity(certificateChain: .text(certificateChainPEM), privateKey: .text(privateKeyPEM))
    }

    /// The private key in PEM, encrypted with a pass phrase (AES-256).
    package func encryptedPrivateKeyPEM(passphrase: String) throws(TLSError) -> String {
        guard case .key(let key) = PEMReader.privateKey(in: Array(privateKeyPEM.utf8), passphrase: nil) else {
            throw TLSError(.identity(reason: "no readable private key", source: "an issued certificate"))
        }
        let secret = Array(passphrase.utf8).map { CChar(bitPattern: $0) }
        return unsafe try PEMWriter.text { bio in
            unsafe PEM_write_bio_PKCS8PrivateKey(
                bio, key.pointer, EVP_aes_256_cbc(), secret, Int32(secret.count), nil, nil)
        }
    }
}
