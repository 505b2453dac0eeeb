import Martlet

/// Reads JSON (RFC 8259) strictly: one value, nothing behind it, no member twice, no more than 32 levels.
struct JSONReader {
    private static let depthLimit = 32
    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    /// The value that a text in UTF-8 has.
    static func value(of bytes: [UInt8]) throws(JSONError) -> JSONValue {
        var reader = JSONReader(bytes: bytes)
        let value = try reader.value()
        reader.skipBlanks()
        guard reader.position == bytes.count else { throw reader.error("something behind the value") }
        return value
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private func error(_ reason: String) -> JSONError { JSONError(reason: reason, offset: position) }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
    }

    private mutating func value() throws(JSONError) -> JSONValue {
        skipBlanks()
        guard let next else { throw error("the text ends where a value should be") }
        switch next {
        case UInt8(ascii: "{"): return try object()
        case UInt8(ascii: "["): return try array()
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return .number(try number())
        default: throw error("no value")
        }
    }

    private mutating func word(_ text: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
        guard take(text) else { throw error("no value") }
        return value
    }

    /// Passes a text, if it is next.
    private mutating func take(_ text: String) -> Bool {
        guard bytes[position...].starts(with: text.utf8) else { return false }
        position += text.utf8.count
        return true
    }

    private mutating func object() throws(JSONError) -> JSONValue {
        var members: [(String, JSONValue)] = []
        try elements(endingWith: "}") { (reader) throws(JSONError) in
            guard reader.next == UInt8(ascii: "\"") else { throw reader.error("no member name") }
            let name = try reader.string()
            guard !members.contains(where: { $0.0 == name }) else {
                throw reader.error("member “\(name)” twice")
            }
            reader.skipBlanks()
            guard reader.take(":") else { throw reader.error("no colon") }
            members.append((name, try reader.value()))
        }
        return .members(members)
    }

    private mutating func array() throws(JSONError) -> JSONValue {
        var values: [JSONValue] = []
        try elements(endingWith: "]") { (reader) throws(JSONError) in values.append(try reader.value()) }
        return .array(values)
    }

    /// Reads what stands between brackets, with commas.
    private mutating func elements(
        endingWith end: String, _ read: (inout JSONReader) throws(JSONError) -> Void
    ) throws(JSONError) {
        depth += 1
        guard depth <= JSONReader.depthLimit else { throw error("more than \(JSONReader.depthLimit) levels") }
        defer { depth -= 1 }
        position += 1
        skipBlanks()
        if take(end) { return }
        while true {
            skipBlanks()
            try read(&self)
            skipBlanks()
            if take(end) { return }
            guard take(",") else { throw error("neither , nor \(end)") }
        }
    }

    private mutating func number() throws(JSONError) -> String {
        let start = position
        _ = take("-")
        if !take("0") { try digits() }
        if take(".") { try digits() }
        if take("e") || take("E") {
            if !take("+") { _ = take("-") }
            try digits()
        }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func digits() throws(JSONError) {
        let start = position
        while let byte = next, (48...57).contains(byte) { position += 1 }
        guard position > start else { throw error("no digit") }
    }

    private mutating func string() throws(JSONError) -> String {
        position += 1
        var output: [UInt8] = []
        var start = position
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""):
                output += bytes[start..<position]
                position += 1
                guard let text = String(validating: output, as: UTF8.self) else {
                    throw error("a string not in UTF-8")
                }
                return text
            case UInt8(ascii: "\\"):
                output += bytes[start..<position]
                position += 1
                try escape(&output)
                start = position
            case 0..<0x20: throw error("a control character in a string")
            default: position += 1
            }
        }
        throw error("a string without an end")
    }

    private static let escapes = Dictionary(
        uniqueKeysWithValues: zip("\"\\/bfnrt".utf8, "\"\\/\u{8}\u{C}\n\r\t".utf8))

    private mutating func escape(_ output: inout [UInt8]) throws(JSONError) {
        guard let byte = next else { throw error("a string without an end") }
        position += 1
        if let character = JSONReader.escapes[byte] { return output.append(character) }
        guard byte == UInt8(ascii: "u") else { throw error("an unknown escape") }
        var code = try codeUnit()
        if (0xD800...0xDBFF).contains(code) {
            guard take("\\u") else { throw error("half of a surrogate pair") }
            let low = try codeUnit()
            guard (0xDC00...0xDFFF).contains(low) else { throw error("half of a surrogate pair") }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw error("half of a surrogate pair") }
        output += Array(String(Character(scalar)).utf8)
    }

    private mutating func codeUnit() throws(JSONError) -> UInt32 {
        guard position + 4 <= bytes.count else { throw error("an escape without its four digits") }
        var code: UInt32 = 0
        for byte in bytes[position..<position + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else {
                throw error("an escape without its four digits")
            }
            code = code << 4 | UInt32(digit)
        }
        position += 4
        return code
    }
}

/// A text that is not JSON.
struct JSONError: Error, Sendable, CustomStringConvertible {
    /// What was wrong.
    var reason: String
    /// The byte it was found at, from 0.
    var offset: Int

    /// What was wrong and where.
    var description: String { "not JSON: \(reason) at byte \(offset)" }
}
