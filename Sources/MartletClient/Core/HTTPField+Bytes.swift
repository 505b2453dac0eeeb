import HTTPTypes
import MartletWire

extension HTTPField {
    /// The value as it goes out, where it is no text: `value` has the replacement character then, for what makes no sense as
    /// UTF-8, so that values which differ are one; only then is it worth a look at the bytes. `nil` where `value` is all of it.
    var bytesOfNoText: [UInt8]? {
        let value = value
        guard value.utf8.contains(0xEF), value.unicodeScalars.contains("\u{FFFD}") else { return nil }
        return unsafe withUnsafeBytesOfValue { unsafe Array($0) }
    }

    /// The value as it goes out.
    var valueBytes: [UInt8] { bytesOfNoText ?? Array(value.utf8) }
}

extension FieldBlock {
    /// Adds a field at the end, as it goes out.
    mutating func append(_ field: HTTPField) {
        if let bytes = field.bytesOfNoText {
            append(name: field.name.rawName.utf8, value: bytes)
        } else {
            append(name: field.name.rawName, value: field.value)
        }
    }
}
