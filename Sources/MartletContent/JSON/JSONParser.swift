import MartletURL
import MartletWire

/// A parser of one JSON value (RFC 8259), strict, in linear time and without recursion.
struct JSONParser {
    /// The upper bound of the depth limit: trees are compared, written and freed recursively.
    private static let greatestDepth = 1024

    /// An incomplete array or object.
    private struct Container {
        let isObject: Bool
        var elements: [JSONValue] = []
        var members = JSONObject()
        /// The name of the current member, before its value.
        var name = ""

        var value: JSONValue { isObject ? .object(members) : .array(elements) }
        var closing: UInt8 { isObject ? UInt8(ascii: "}") : UInt8(ascii: "]") }
    }

    private let bytes: [UInt8]
    private let depthLimit: Int
    private var position = 0
    private var containers: [Container] = []

    init(_ bytes: [UInt8], depthLimit: Int) {
        self.bytes = bytes
        self.depthLimit = min(max(depthLimit, 0), JSONParser.greatestDepth)
    }

    /// Returns the value that the bytes contain.
    mutating func parse() throws(JSONError) -> JSONValue {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        while true {
            skipBlanks()
            guard let value = try complete(), let whole = try placed(value) else { continue }
            skipBlanks()
            guard position == bytes.count else { throw makeError(.trailingBytes) }
            return whole
        }
    }

    /// Returns a complete value at the cursor; `nil` at the beginning of an array or an object that is not empty.
    private mutating func complete() throws(JSONError) -> JSONValue? {
        guard let byte = current else { throw makeError(.unexpectedByte) }
        switch byte {
        case UInt8(ascii: "["), UInt8(ascii: "{"): return try opened()
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            let start = position
            position = try JSONParser.endOfNumber(in: bytes, from: start)
            return .number(JSONNumber(read: String(decoding: bytes[start..<position], as: UTF8.self)))
        case UInt8(ascii: "n"): return try word("null", .null)
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        default: throw makeError(.unexpectedByte)
        }
    }

    /// Opens an array or an object, and returns it if it is empty.
    private mutating func opened() throws(JSONError) -> JSONValue? {
        guard containers.count < depthLimit else { throw makeError(.tooDeep) }
        let container = Container(isObject: current == UInt8(ascii: "{"))
        position += 1
        skipBlanks()
        if current == container.closing {
            position += 1
            return container.value
        }
        containers.append(container)
        if container.isObject { try name() }
        return nil
    }

    /// Adds a value to its container, and closes each container that ends after it.
    /// - Returns: The outermost value once it is complete; `nil` before.
    private mutating func placed(_ value: JSONValue) throws(JSONError) -> JSONValue? {
        var value = value
        while !containers.isEmpty {
            let last = containers.count - 1
            if containers[last].isObject {
                containers[last].members.set(containers[last].name, value)
            } else {
                containers[last].elements.append(value)
            }
            skipBlanks()
            switch current {
            case UInt8(ascii: ","):
                position += 1
                if containers[last].isObject {
                    skipBlanks()
                    try name()
                }
                return nil
            case containers[last].closing:
                position += 1
                value = containers.removeLast().value
            default: throw makeError(.unexpectedByte)
            }
        }
        return value
    }

    /// Parses the name of a member and its colon.
    private mutating func name() throws(JSONError) {
        guard current == UInt8(ascii: "\"") else { throw makeError(.unexpectedByte) }
        let name = try string()
        skipBlanks()
        guard current == UInt8(ascii: ":") else { throw makeError(.unexpectedByte) }
        position += 1
        containers[containers.count - 1].name = name
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for byte in word.utf8 {
            guard current == byte else { throw makeError(.unexpectedByte) }
            position += 1
        }
        return value
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipBlanks() {
        while let byte = current, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { position += 1 }
    }

    /// Returns the error at the cursor, or at the end of the text.
    private func makeError(_ reason: JSONError.Reason) -> JSONError {
        let isEnd = position == bytes.count && reason == .unexpectedByte
        return JSONError(reason: isEnd ? .unexpectedEnd : reason, offset: position)
    }

    // MARK: Strings

    /// Parses the string at the cursor (RFC 8259 §7).
    private mutating func string() throws(JSONError) -> String {
        let start = position + 1
        var (end, hasEscapes) = (start, false)
        scan: while end < bytes.count {
            switch bytes[end] {
            case UInt8(ascii: "\""): break scan
            case UInt8(ascii: "\\"):
                hasEscapes = true
                end += 2
            case 0..<0x20: throw JSONError(reason: .controlCharacter, offset: end)
            default: end += 1
            }
        }
        guard end < bytes.count else { throw JSONError(reason: .unexpectedEnd, offset: bytes.count) }
        position = end + 1
        let content = bytes[start..<end]
        guard let raw = String(validating: content, as: UTF8.self) else {
            throw JSONError(reason: .invalidUTF8, offset: TextDecoding.malformedOffset(in: content, .utf8) ?? start)
        }
        return hasEscapes ? try JSONParser.unescaped(content) : raw
    }

    /// Decodes the escapes of a string in UTF-8.
    private static func unescaped(_ content: ArraySlice<UInt8>) throws(JSONError) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(content.count)
        var rest = content
        while true {
            let plain = rest.prefix { $0 != UInt8(ascii: "\\") }
            text += plain
            rest = rest[plain.endIndex...]
            let escape = rest.startIndex
            guard rest.popFirst() != nil else { return String(decoding: text, as: UTF8.self) }
            switch rest.popFirst() {
            case let letter? where "\"\\/".utf8.contains(letter): text.append(letter)
            case UInt8(ascii: "b"): text.append(0x08)
            case UInt8(ascii: "f"): text.append(0x0C)
            case UInt8(ascii: "n"): text.append(0x0A)
            case UInt8(ascii: "r"): text.append(0x0D)
            case UInt8(ascii: "t"): text.append(0x09)
            case UInt8(ascii: "u"): text += Array(String(try scalar(&rest, escape)).utf8)
            default: throw JSONError(reason: .invalidEscape, offset: escape)
            }
        }
    }

    /// Returns the character of an escape after its `u`, or of two escapes that form a surrogate pair.
    private static func scalar(_ rest: inout ArraySlice<UInt8>, _ escape: Int) throws(JSONError) -> Unicode.Scalar {
        let unit = try unit(&rest, escape)
        if let scalar = Unicode.Scalar(unit) { return scalar }
        // The unit is a surrogate: a high one must be followed by a low one.
        let second = rest.startIndex
        guard unit < 0xDC00, rest.starts(with: "\\u".utf8) else {
            throw JSONError(reason: .loneSurrogate, offset: escape)
        }
        rest = rest.dropFirst(2)
        let low = try self.unit(&rest, second)
        guard (0xDC00...0xDFFF).contains(low),
            let scalar = Unicode.Scalar(0x10000 + (UInt32(unit) - 0xD800) << 10 + (UInt32(low) - 0xDC00))
        else { throw JSONError(reason: .loneSurrogate, offset: escape) }
        return scalar
    }

    /// Returns the number of four hexadecimal digits.
    private static func unit(_ rest: inout ArraySlice<UInt8>, _ escape: Int) throws(JSONError) -> UInt16 {
        var unit: UInt16 = 0
        for _ in 0..<4 {
            guard let digit = rest.popFirst().flatMap(PercentEncoding.hexValue) else {
                throw JSONError(reason: .invalidEscape, offset: escape)
            }
            unit = unit << 4 | UInt16(digit)
        }
        return unit
    }

    // MARK: Numbers

    /// Returns the end position of a number (RFC 8259 §6).
    static func endOfNumber(in bytes: [UInt8], from start: Int) throws(JSONError) -> Int {
        var position = start
        func current() -> UInt8? { position < bytes.count ? bytes[position] : nil }
        func digits() throws(JSONError) {
            let first = position
            while let byte = current(), ByteClass.isDigit(byte) { position += 1 }
            guard position > first else {
                throw JSONError(reason: position == bytes.count ? .unexpectedEnd : .invalidNumber, offset: position)
            }
        }
        if current() == UInt8(ascii: "-") { position += 1 }
        if current() == UInt8(ascii: "0") {
            position += 1
            if let byte = current(), ByteClass.isDigit(byte) {
                throw JSONError(reason: .invalidNumber, offset: position)
            }
        } else {
            try digits()
        }
        if current() == UInt8(ascii: ".") {
            position += 1
            try digits()
        }
        if current() == UInt8(ascii: "e") || current() == UInt8(ascii: "E") {
            position += 1
            if current() == UInt8(ascii: "+") || current() == UInt8(ascii: "-") { position += 1 }
            try digits()
        }
        return position
    }
}

/// An error in JSON input (RFC 8259), with its byte offset.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error. More kinds may be added: a `switch` needs a default.
    public enum Reason: String, Hashable, Sendable {
        /// The text ends within a value, or is empty.
        case unexpectedEnd
        /// A byte is not allowed here: not the expected value, comma, colon or bracket.
        case unexpectedByte
        /// A number violates the grammar: a leading zero, a missing digit (RFC 8259 §6).
        case invalidNumber
        /// A backslash is not followed by a valid escape (RFC 8259 §7).
        case invalidEscape
        /// A string contains an unescaped control character (RFC 8259 §7).
        case controlCharacter
        /// A string is not UTF-8 (RFC 8259 §8.1).
        case invalidUTF8
        /// An escape is half of a surrogate pair, which is not a character (RFC 8259 §8.2).
        case loneSurrogate
        /// Arrays and objects are nested deeper than the limit.
        case tooDeep
        /// Bytes follow the value.
        case trailingBytes
    }

    /// The kind of error.
    public let reason: Reason
    /// The offset of the byte, counted from 0.
    public let offset: Int

    /// Creates an error at an offset.
    public init(reason: Reason, offset: Int) { (self.reason, self.offset) = (reason, offset) }

    /// The error and its position, as text.
    public var description: String {
        let what =
            switch reason {
            case .unexpectedEnd: "the text ends within a value"
            case .unexpectedByte: "an unexpected byte"
            case .invalidNumber: "an invalid number"
            case .invalidEscape: "an invalid escape"
            case .controlCharacter: "a control character in a string"
            case .invalidUTF8: "invalid UTF-8"
            case .loneSurrogate: "half of a surrogate pair"
            case .tooDeep: "the nesting is too deep"
            case .trailingBytes: "unexpected bytes after the value"
            }
        return "invalid JSON at byte \(offset): \(what)"
    }
}
