import COpenSSL

/// A certificate revocation list (RFC 5280 §5), owned.
@safe final class RevocationList {
    let pointer: OpaquePointer

    /// Takes over a reference.
    init(owning pointer: OpaquePointer) {
        unsafe self.pointer = pointer
    }

    deinit {
        unsafe X509_CRL_free(pointer)
    }

    /// The lists of a source, at least one.
    static func lists(of source: PEMSource) throws(TLSError) -> [RevocationList] {
        let bytes: [UInt8]
        do throws(SystemError) {
            bytes = try PEMReader.bytes(of: source)
        } catch {
            throw TLSError(.revocationList(reason: error.description, source: source.description))
        }
        let found: [RevocationList]
        do throws(PEMFault) {
            found = try PEMReader.revocationLists(in: bytes)
        } catch {
            throw TLSError(.revocationList(reason: error.description, source: source.description))
        }
        guard !found.isEmpty else {
            throw TLSError(
                .revocationList(reason: "no revocation list in it", source: source.description))
        }
        return found
    }
}
