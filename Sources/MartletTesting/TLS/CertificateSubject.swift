/// Finds the subject's common name in a certificate (RFC 5280 §4.1) without verifying anything: TLS did that.
enum CertificateSubject {
    /// The last common name of the subject; `nil` when there is none or the bytes are no certificate.
    static func commonName(inDER der: [UInt8]) -> String? {
        var outer = Elements(der[...])
        guard let certificate = outer.next(), certificate.tag == 0x30 else { return nil }
        var inner = Elements(certificate.content)
        guard let body = inner.next(), body.tag == 0x30 else { return nil }
        // Version, serial number, signature, issuer, validity, subject: the version may be missing.
        let parts = Array(Elements(body.content))
        let subjectIndex = parts.first?.tag == 0xA0 ? 5 : 4
        guard parts.count > subjectIndex, parts[subjectIndex].tag == 0x30 else { return nil }
        var name: String?
        for set in Elements(parts[subjectIndex].content) {
            for attribute in Elements(set.content) {
                var pair = Elements(attribute.content)
                guard let type = pair.next(), let value = pair.next() else { continue }
                // 2.5.4.3: id-at-commonName.
                if type.tag == 0x06, type.content.elementsEqual([0x55, 0x04, 0x03]) {
                    name = String(decoding: value.content, as: UTF8.self)
                }
            }
        }
        return name
    }

    /// The elements of a DER sequence (X.690), up to the first that is malformed.
    private struct Elements: Sequence, IteratorProtocol {
        private var rest: ArraySlice<UInt8>

        init(_ bytes: ArraySlice<UInt8>) {
            rest = bytes
        }

        mutating func next() -> (tag: UInt8, content: ArraySlice<UInt8>)? {
            guard let tag = rest.popFirst(), let first = rest.popFirst() else { return nil }
            var length = Int(first)
            if first >= 0x80 {
                let count = Int(first & 0x7F)
                guard (1...4).contains(count), rest.count >= count else { return nil }
                length = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
                rest = rest.dropFirst(count)
            }
            guard rest.count >= length else { return nil }
            defer { rest = rest.dropFirst(length) }
            return (tag, rest.prefix(length))
        }
    }
}
