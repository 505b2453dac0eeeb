public import FoundationEssentials

/// Parameters of a request: a tree of values as in JSON, with dates, data and sets.
///
/// Write it with literals; wrap variables in the case of their kind, or in `.value(_:)`, which takes any `Encodable`:
///
/// ```swift
/// let page: ParameterValue = try [
///     "tags": ["swift", "linux"], "limit": 20, "after": .date(start), "q": .string(q), "page": .value(page),
/// ]
/// ```
///
/// ``init(encoding:)`` creates a tree from any `Encodable` value. A ``ParameterEncoding`` writes it.
public indirect enum ParameterValue: Hashable, Sendable {
    /// Null. At the top: no parameters. Nested: written as ``QueryEncoding/nulls`` specifies.
    case null
    /// A Boolean, `true` or `false`.
    case bool(Bool)
    /// An integer that fits into `Int`.
    case integer(Int)
    /// An integer above `Int.max`.
    case unsigned(UInt64)
    /// A floating-point number. Infinity and NaN are rejected when it is written.
    case number(Double)
    /// A decimal number with all its digits.
    case decimal(Decimal)
    /// A text, in Unicode.
    case string(String)
    /// A point in time.
    case date(Date)
    /// A sequence of bytes.
    case data(Data)
    /// A list of values in order.
    case array([ParameterValue])
    /// A set of values, written sorted, so that equal sets give equal bytes.
    case set(Set<ParameterValue>)
    /// An object: values by name, written in the order of their names.
    case object([String: ParameterValue])

    /// The maximum depth of arrays, sets, objects, and values that only wrap another one: 100. It prevents a stack
    /// overflow by an object that contains itself.
    public static let depthLimit = 100

    /// Creates the tree of a value.
    ///
    /// Dates, data, decimal numbers and sets become the cases of their kind, and a URL becomes its text; their
    /// `encode(to:)` is not called. Synthesized encoders omit properties that are `nil`; a value written with
    /// `encodeNil` is ``null``. Of several values for one key, the last is used.
    /// - Throws: A ``ParameterError`` with the path of the value; the errors of the value's own `encode(to:)`.
    public init(encoding value: some Encodable) throws {
        try self.init(encoding: value, keys: .useDefaultKeys, dates: .deferredToDate)
    }

    /// Creates the tree of a value, with a key strategy, and with the closure of a date strategy.
    package init(
        encoding value: some Encodable, keys: JSONEncoder.KeyEncodingStrategy, dates: JSONEncoder.DateEncodingStrategy
    ) throws { self = try ParameterEncoder.value(of: value, keys: keys, dates: dates) }
}

extension ParameterValue: Encodable {
    /// Writes the tree as objects, arrays and plain values. Sets are arrays, in the order of ``QueryEncoding``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .integer(let value): try container.encode(value)
        case .unsigned(let value): try container.encode(value)
        case .number(let value): try container.encode(value)
        case .decimal(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .date(let value): try container.encode(value)
        case .data(let value): try container.encode(value)
        case .array(let values): try container.encode(values)
        case .set(let values): try container.encode(try QueryWriter.sorted(values))
        case .object(let values): try container.encode(values)
        }
    }

    /// Throws an error for values that no format supports.
    /// - Parameter allowsNull: Whether ``null`` is allowed.
    package func check(allowsNull: Bool = true) throws(ParameterError) {
        try check(at: ParameterPath(), allowsNull: allowsNull)
    }

    private func check(at path: ParameterPath, allowsNull: Bool) throws(ParameterError) {
        switch self {
        case .null: if !allowsNull { throw ParameterError(.nullNotAllowed, at: path) }
        case .number(let value): guard value.isFinite else { throw ParameterError(.notFinite, at: path) }
        case .decimal(let value): guard !value.isNaN else { throw ParameterError(.notFinite, at: path) }
        case .date(let value):
            guard value.timeIntervalSince1970.isFinite else { throw ParameterError(.dateOutOfRange, at: path) }
        case .bool, .integer, .unsigned, .string, .data: break
        case .array(let values):
            for (index, value) in values.enumerated() {
                try value.check(at: try path.inside(index), allowsNull: allowsNull)
            }
        case .set(let values):
            let inner = try path.inside(0)
            for value in values { try value.check(at: inner, allowsNull: allowsNull) }
        case .object(let values):
            for (key, value) in values { try value.check(at: try path.inside(key), allowsNull: allowsNull) }
        }
    }
}

extension ParameterValue: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByNilLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// Creates a text value.
    public init(stringLiteral value: String) { self = .string(value) }
    /// Creates an integer value.
    public init(integerLiteral value: Int) { self = .integer(value) }
    /// Creates a floating-point value.
    public init(floatLiteral value: Double) { self = .number(value) }
    /// Creates a Boolean value.
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    /// Creates a null value.
    public init(nilLiteral: ()) { self = .null }
    /// Creates a list of values in order.
    public init(arrayLiteral elements: ParameterValue...) { self = .array(elements) }
    /// Creates an object; the last of several values with one name is used.
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}
