/// Reads one value of JSON (RFC 8259), strictly and in linear time, without recursion.
struct JSONParser {
    /// Depths beyond this are refused whatever the caller says: trees are compared, written and freed recursively.
    private static let greatestDepth = 1024

    /// An array or an object that is not complete.
    private struct Container {
        let isObject: Bool
        var elements: [JSONValue] = []
        var members = JSONObject()
        /// The name of the member whose value is due.
        var name = ""

        var value: JSONValue { isObject ? .object(members) : .array(elements) }
        var closing: UInt8 { isObject ? UInt8(ascii: "}") : UInt8(ascii: "]") }

        init(isObject: Bool) { self.isObject = isObject }
    }

    private let bytes: [UInt8]
    private let depthLimit: Int
    private var position = 0
    private var containers: [Container] = []

    init(_ bytes: [UInt8], depthLimit: Int) {
        self.bytes = bytes
        self.depthLimit = min(max(depthLimit, 0), JSONParser.greatestDepth)
    }

    /// The value that the bytes are.
    mutating func parse() throws(JSONError) -> JSONValue {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { position = 3 }
        while true {
            skipBlanks()
            guard let value = try complete() else { continue }
            if let whole = try placed(value) {
                skipBlanks()
                guard position == bytes.count else { throw fault(.trailingBytes) }
                return whole
            }
        }
    }

    /// A value that is complete at the cursor; `nil` where an array or an object begins that is not empty.
    private mutating func complete() throws(JSONError) -> JSONValue? {
        guard let byte = current else { throw fault(.unexpectedByte) }
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
        default: throw fault(.unexpectedByte)
        }
    }

    /// Begins an array or an object; its value, where it is empty.
    private mutating func opened() throws(JSONError) -> JSONValue? {
        guard containers.count < depthLimit else { throw fault(.tooDeep) }
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

    /// Puts a value where it belongs, and what is complete by that likewise; the outermost one, once it is complete.
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
            default: throw fault(.unexpectedByte)
            }
        }
        return value
    }

    /// Reads a member's name and its colon.
    private mutating func name() throws(JSONError) {
        guard current == UInt8(ascii: "\"") else { throw fault(.unexpectedByte) }
        let name = try string()
        skipBlanks()
        guard current == UInt8(ascii: ":") else { throw fault(.unexpectedByte) }
        position += 1
        containers[containers.count - 1].name = name
    }

    private mutating func word(_ word: String, _ value: JSONValue) throws(JSONError) -> JSONValue {
        for byte in word.utf8 {
            guard current == byte else { throw fault(.unexpectedByte) }
            position += 1
        }
        return value
    }

    private mutating func string() throws(JSONError) -> String {
        let string = try JSONString(in: bytes, at: position)
        position = string.end
        return string.text
    }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipBlanks() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x09, 0x0A, 0x0D: position += 1
            default: return
            }
        }
    }

    /// The fault at the cursor, or of a text that ends there.
    private func fault(_ reason: JSONError.Reason) -> JSONError {
        let isEnd = position == bytes.count && reason == .unexpectedByte
        return JSONError(reason: isEnd ? .unexpectedEnd : reason, offset: position)
    }

    /// Where a number ends (RFC 8259 §6).
    static func endOfNumber(in bytes: [UInt8], from start: Int) throws(JSONError) -> Int {
        var position = start
        func current() -> UInt8? { position < bytes.count ? bytes[position] : nil }
        func digits() throws(JSONError) {
            let first = position
            while let byte = current(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
                position += 1
            }
            guard position > first else {
                throw JSONError(
                    reason: position == bytes.count ? .unexpectedEnd : .invalidNumber, offset: position)
            }
        }
        if current() == UInt8(ascii: "-") { position += 1 }
        if current() == UInt8(ascii: "0") {
            position += 1
            if let byte = current(), (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
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

/// Why bytes are no JSON (RFC 8259), and where.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong. More may be added: a `switch` needs a default.
    public enum Reason: String, Hashable, Sendable {
        /// The text ends in the middle of a value; or there is none.
        case unexpectedEnd
        /// A byte stands where none such may: no value, comma, colon or bracket that could be there.
        case unexpectedByte
        /// A number breaks the grammar: a leading zero, a missing digit (RFC 8259 §6).
        case invalidNumber
        /// A backslash is followed by what is no escape (RFC 8259 §7).
        case invalidEscape
        /// A control character stands in a string as it is (RFC 8259 §7).
        case controlCharacter
        /// A string is not UTF-8 (RFC 8259 §8.1).
        case invalidUTF8
        /// An escape is half of a surrogate pair, which no text can hold (RFC 8259 §8.2).
        case loneSurrogate
        /// Arrays and objects are nested deeper than the limit.
        case tooDeep
        /// Something stands behind the value.
        case trailingBytes
    }

    /// What is wrong.
    public let reason: Reason
    /// The byte where it is, counted from 0.
    public let offset: Int

    /// An error.
    public init(reason: Reason, offset: Int) {
        self.reason = reason
        self.offset = offset
    }

    /// What is wrong, and where.
    public var description: String {
        let what =
            switch reason {
            case .unexpectedEnd: "it ends in the middle of a value"
            case .unexpectedByte: "nothing that could stand there"
            case .invalidNumber: "no number"
            case .invalidEscape: "no escape"
            case .controlCharacter: "a control character in a string"
            case .invalidUTF8: "no UTF-8"
            case .loneSurrogate: "half of a surrogate pair"
            case .tooDeep: "nested too deep"
            case .trailingBytes: "something behind the value"
            }
        return "no JSON at byte \(offset): \(what)"
    }
}
