/// How bytes of a head become characters.
package enum ByteText {
    /// UTF-8 if the bytes are that, else Latin-1.
    package static func string(_ bytes: ArraySlice<UInt8>) -> String {
        String(validating: bytes, as: UTF8.self) ?? latin1(bytes)
    }

    /// Each byte as the character of the same number; the inverse of ``latin1Bytes(_:)``.
    package static func latin1(_ bytes: ArraySlice<UInt8>) -> String {
        // ASCII, mostly, which is the same in both.
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return String(decoding: bytes.lazy.map { UInt16($0) }, as: UTF16.self)
    }

    /// The bytes of a string whose characters are all below U+0100, or nil when one is not.
    package static func latin1Bytes(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else { return nil }
            bytes.append(byte)
        }
        return bytes
    }
}
