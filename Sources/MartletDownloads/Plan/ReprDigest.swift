import MartletClient

/// The field `Repr-Digest` (RFC 9530 §3): digests of a file as it is sent, whatever part of it an answer has.
package enum ReprDigest {
    /// The digests of the field that can be computed, SHA-256 and SHA-512, the strongest first; those that are malformed or
    /// by another algorithm are passed over (RFC 9530 §3).
    package static func checksums(_ values: [String]) -> [Checksum] {
        var found: [String: Checksum] = [:]
        // Neither base64 nor the algorithms' names have a comma; a member's parameters, of which none is defined, may.
        for member in values.joined(separator: ",").split(separator: ",") {
            let text = trimmed(member)
            guard let equals = text.firstIndex(of: "=") else { continue }
            let name = String(text[..<equals])
            let algorithm: DigestSink.Algorithm
            switch name {
            case "sha-256": algorithm = .sha256
            case "sha-512": algorithm = .sha512
            default: continue
            }
            let value = text[text.index(after: equals)...]
            guard value.utf8.count < 200, value.first == ":",
                let end = value.dropFirst().firstIndex(of: ":"),
                let bytes = bytes(ofBase64: value[value.index(after: value.startIndex)..<end]),
                let checksum = Checksum(algorithm, bytes)
            else { continue }
            // Of a key that is there several times, the last counts (RFC 9651 §3.2).
            found[name] = checksum
        }
        return [found["sha-512"], found["sha-256"]].compactMap { $0 }
    }

    private static func trimmed(_ text: Substring) -> Substring {
        var text = text
        while let first = text.first, first == " " || first == "\t" { text = text.dropFirst() }
        while let last = text.last, last == " " || last == "\t" { text = text.dropLast() }
        return text
    }

    /// Bytes in base64 (RFC 4648 §4), padded; nil for anything else.
    private static func bytes(ofBase64 text: Substring) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard !digits.isEmpty, digits.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 4 * 3)
        for start in stride(from: 0, to: digits.count, by: 4) {
            var group: UInt32 = 0
            var padding = 0
            for (place, digit) in digits[start..<start + 4].enumerated() {
                if digit == UInt8(ascii: "=") {
                    // Padding is at the very end, and at most two.
                    guard place >= 2, start + 4 == digits.count else { return nil }
                    padding += 1
                    group <<= 6
                } else {
                    guard padding == 0, let value = value(digit) else { return nil }
                    group = group << 6 | value
                }
            }
            bytes.append(UInt8(group >> 16 & 0xFF))
            if padding < 2 { bytes.append(UInt8(group >> 8 & 0xFF)) }
            if padding < 1 { bytes.append(UInt8(group & 0xFF)) }
        }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
