import MartletURL
import FoundationEssentials

/// A writer of a tree of parameters as pairs of names and values, by the rules of a ``QueryEncoding``.
struct QueryWriter {
    private let encoding: QueryEncoding
    private var bytes: [UInt8] = []
    // Not whether there are bytes: a null with an empty name is a pair without bytes.
    private var hasPairs = false

    /// Returns the pairs of parameters, joined by `&`.
    static func text(of parameters: ParameterValue, by encoding: QueryEncoding) throws(ParameterError) -> String {
        guard case .object = parameters else { throw ParameterError(.notAnObject, at: ParameterPath()) }
        var writer = QueryWriter(encoding: encoding)
        try writer.write(parameters, named: nil, at: ParameterPath())
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    /// Returns the values of a set in the default order.
    static func sorted(_ values: Set<ParameterValue>) throws(ParameterError) -> [ParameterValue] {
        try QueryWriter(encoding: QueryEncoding()).sorted(values, at: ParameterPath())
    }

    private mutating func write(_ value: ParameterValue, named name: String?, at path: ParameterPath)
        throws(ParameterError)
    {
        switch value {
        case .object(let values):
            for (key, inner) in values.map({ (styled($0.key), $0.value) }).sorted(by: { $0.0 < $1.0 }) {
                try write(inner, named: name.map { "\($0)[\(key)]" } ?? key, at: try path.inside(key))
            }
        case .array(let values): try write(values, named: name, isSet: false, at: path)
        case .set(let values): try write(try sorted(values, at: path), named: name, isSet: true, at: path)
        case .null:
            guard encoding.nulls != .dropped else { return }
            begin(name)
            if encoding.nulls == .emptyValue { bytes.append(UInt8(ascii: "=")) }
        case .bool, .integer, .unsigned, .number, .decimal, .string, .date, .data:
            guard let text = try text(of: value, at: path) else { return }
            begin(name)
            bytes.append(UInt8(ascii: "="))
            QueryWriter.append(text, to: &bytes)
        }
    }

    private mutating func write(_ values: [ParameterValue], named name: String?, isSet: Bool, at path: ParameterPath)
        throws(ParameterError)
    {
        guard encoding.arrays == .commaSeparated else {
            for (index, inner) in values.enumerated() {
                let itemName = isSet ? name : itemName(name ?? "", index)
                try write(inner, named: itemName, at: try path.inside(index))
            }
            return
        }
        var texts: [String] = []
        for (index, value) in values.enumerated() {
            let place = try path.inside(index)
            if value == .null {
                if encoding.nulls != .dropped { texts.append("") }
            } else if let text = try text(of: value, at: place) {
                texts.append(text)
            } else {
                throw ParameterError(.notAList, at: place)
            }
        }
        guard !texts.isEmpty else { return }
        begin(name)
        for (index, text) in texts.enumerated() {
            bytes.append(UInt8(ascii: index == 0 ? "=" : ","))
            QueryWriter.append(text, to: &bytes)
        }
    }

    private mutating func begin(_ name: String?) {
        if hasPairs { bytes.append(UInt8(ascii: "&")) }
        hasPairs = true
        QueryWriter.append(name ?? "", to: &bytes)
    }

    private func itemName(_ name: String, _ index: Int) -> String {
        switch encoding.arrays {
        case .brackets: "\(name)[]"
        case .indexed: "\(name)[\(index)]"
        case .repeated, .commaSeparated: name
        }
    }

    private func styled(_ key: String) -> String { encoding.keys == .asIs ? key : SnakeCase.text(key) }

    /// Returns the values of a set, sorted by their texts: for a null or a container, by the pairs that it would add.
    private func sorted(_ values: Set<ParameterValue>, at path: ParameterPath) throws(ParameterError)
        -> [ParameterValue]
    {
        let inner = try path.inside(0)
        let keyed = try values.map { value throws(ParameterError) in
            if let text = try text(of: value, at: inner) { return (text: text, value: value) }
            var writer = QueryWriter(encoding: encoding)
            try writer.write(value, named: nil, at: inner)
            return (text: String(decoding: writer.bytes, as: UTF8.self), value: value)
        }
        return keyed.sorted { $0.text < $1.text }.map(\.value)
    }

    /// Returns the text of a value; `nil` for a null, an array, a set and an object.
    private func text(of value: ParameterValue, at path: ParameterPath) throws(ParameterError) -> String? {
        switch value {
        case .null, .array, .set, .object: return nil
        case .bool(let value): return encoding.booleans == .literal ? String(value) : value ? "1" : "0"
        case .integer(let value): return String(value)
        case .unsigned(let value): return String(value)
        case .number(let value):
            guard value.isFinite else { throw ParameterError(.notFinite, at: path) }
            return QueryWriter.text(of: value)
        case .decimal(let value):
            guard !value.isNaN else { throw ParameterError(.notFinite, at: path) }
            return value.description
        case .string(let value): return value
        case .date(let value): return try text(of: value, at: path)
        case .data(let value):
            let text = value.base64EncodedString()
            guard encoding.data == .base64URL else { return text }
            return String(text.prefix { $0 != "=" }.map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 })
        }
    }

    /// Returns a number with the fewest digits that parse to the same value; integers have no decimal point.
    private static func text(of value: Double) -> String {
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    private func text(of date: Date, at path: ParameterPath) throws(ParameterError) -> String {
        let seconds = date.timeIntervalSince1970
        switch encoding.dates {
        case .iso8601, .iso8601WithMilliseconds:
            guard QueryWriter.secondsOfISO8601.contains(seconds) else { break }
            let withMilliseconds = encoding.dates == .iso8601WithMilliseconds
            return Date.ISO8601FormatStyle(includingFractionalSeconds: withMilliseconds).format(date)
        case .secondsSince1970: if seconds.isFinite { return QueryWriter.text(of: seconds) }
        case .millisecondsSince1970:
            if let milliseconds = Int64(exactly: (seconds * 1000).rounded()) { return String(milliseconds) }
        }
        throw ParameterError(.dateOutOfRange, at: path)
    }

    /// The years 0 to 9999, which have at most four digits, in seconds since 1970.
    private static let secondsOfISO8601 = -62_167_219_200.0...253_402_300_799.0

    /// The characters that are encoded: all except letters, digits and `-._~/?` (RFC 3986 §2.3, §3.4).
    private static let set = PercentEncoding.EncodeSet("!\"#$%&'()*+,:;<=>@[\\]^`{|} ")

    /// Appends a text, percent-encoded.
    static func append(_ text: String, to output: inout [UInt8]) {
        PercentEncoding.append(text, escaping: set, to: &output)
    }
}
