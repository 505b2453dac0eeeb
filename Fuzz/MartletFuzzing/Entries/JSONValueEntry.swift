import MartletContent
import MartletCore

extension FuzzEntry {
    /// JSON texts.
    ///
    /// An error has the offset of a byte of the input, or of its end. A parsed value survives writing and parsing in
    /// every style, and is written identically again. On one line it is no longer than the input. Without nulls no
    /// object contains one.
    static let jsonValue = FuzzEntry("json-value") { (bytes) throws(FuzzFinding) in
        let value: JSONValue
        do throws(JSONError) {
            value = try JSONValue(parsing: bytes)
        } catch {
            return try require((0...bytes.count).contains(error.offset), "\(error)")
        }
        let written = value.bytes()
        // A raw byte is written unchanged, and an escape with no more bytes than before.
        try require(written.count <= bytes.count, "\(bytes.count) bytes became \(written.count)")
        for style: JSONValue.Style in [.compact, .indented, .sorted, [.indented, .sorted]] {
            let again = value.bytes(style)
            try require(String(validating: again, as: UTF8.self) != nil, "what is written is no UTF-8")
            guard let read = try? JSONValue(parsing: again) else {
                throw FuzzFinding("\(String(decoding: again, as: UTF8.self)) is not read")
            }
            try require(read == value, "\(value) reads back as \(read)")
            try require(read.hashValue == value.hashValue, "\(value) hashes otherwise when it is read back")
            try require(read.bytes(style) == again, "\(value) is written in two ways")
        }
        let pruned = value.removingNulls()
        try require(!hasNullMember(pruned), "\(pruned) has a null left")
        try require(pruned.removingNulls() == pruned, "\(pruned) has more to take out")
        try checkNumbers(value)
    }

    private static func hasNullMember(_ value: JSONValue) -> Bool {
        switch value {
        case .array(let elements): elements.contains(where: hasNullMember)
        case .object(let members): members.contains { $0.value.isNull || hasNullMember($0.value) }
        default: false
        }
    }

    /// Checks that a number retains its value in every representation.
    private static func checkNumbers(_ value: JSONValue) throws(FuzzFinding) {
        switch value {
        case .array(let elements): for element in elements { try checkNumbers(element) }
        case .object(let members): for member in members { try checkNumbers(member.value) }
        case .number(let number):
            try require(JSONNumber(text: number.text) == number, "\(number) is no number by itself")
            if let int = number.int { try require(JSONNumber(int) == number, "\(number) is not \(int)") }
            if let wide = number.uint64 {
                try require(JSONNumber(wide) == number, "\(number) is not \(wide)")
            }
            if let double = number.double {
                let text = JSONNumber(double)?.text
                try require(text.flatMap { Double($0) } == double, "\(number) is not \(double)")
            }
        default: break
        }
    }
}
