/// A member of a request: its name, and readers that name it when its type is wrong.
struct BatchMember: Sendable {
    /// Its name.
    let name: String
    /// Its value.
    let value: JSONValue

    private func wrong(_ type: String) -> BatchFault {
        BatchFault(.other, "“\(name)” must be \(type)")
    }

    /// Whether it is null.
    var isNull: Bool {
        if case .null = value { true } else { false }
    }

    /// A string.
    func string() throws(BatchFault) -> String {
        guard case .string(let text) = value else { throw wrong("a string") }
        return text
    }

    /// A string of characters up to U+00FF, each of which is a byte.
    func bytes() throws(BatchFault) -> [UInt8] {
        let text = try string()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else {
                throw wrong("a string of characters up to U+00FF, each of which is a byte")
            }
            bytes.append(byte)
        }
        return bytes
    }

    /// true or false.
    func bool() throws(BatchFault) -> Bool {
        guard case .bool(let value) = value else { throw wrong("true or false") }
        return value
    }

    /// A whole number, not negative.
    func count() throws(BatchFault) -> Int {
        guard case .number(let text) = value, let number = Int(text), number >= 0 else {
            throw wrong("a whole number that is not negative")
        }
        return number
    }

    /// An array.
    func array() throws(BatchFault) -> [BatchMember] {
        guard case .array(let values) = value else { throw wrong("an array") }
        return values.map { BatchMember(name: name, value: $0) }
    }

    /// The members of an object, each with this member's name and a dot before its own.
    func object() throws(BatchFault) -> [BatchMember] {
        guard case .object(let members) = value else { throw wrong("an object") }
        return members.map { BatchMember(name: "\(name).\($0.0)", value: $0.1) }
    }
}
