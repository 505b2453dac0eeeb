import MartletCore
public import FoundationEssentials

/// Parameters of a request: a tree of values as JSON knows them, and dates, data and sets besides.
///
/// It is written as literals, and what is no literal is wrapped by the case that names its kind:
///
/// ```swift
/// let page: ParameterValue = ["tags": ["swift", "linux"], "limit": 20, "after": .date(start), "q": .string(text)]
/// ```
///
/// Values of any type that is `Encodable` become such a tree by ``init(encoding:)``. How it is written is the matter of a
/// ``ParameterEncoding``.
public indirect enum ParameterValue: Hashable, Sendable {
    /// Nothing: at the top, no parameters at all; below, whatever ``QueryEncoding/nulls`` says.
    case null
    /// Yes or no.
    case bool(Bool)
    /// A whole number.
    case integer(Int)
    /// A whole number above `Int.max`.
    case unsigned(UInt64)
    /// A number. Infinity and NaN are refused when it is written.
    case number(Double)
    /// A decimal number, of which every digit counts.
    case decimal(Decimal)
    /// A text.
    case string(String)
    /// A point in time.
    case date(Date)
    /// Bytes.
    case data(Data)
    /// Values in order.
    case array([ParameterValue])
    /// Values without order: they are written sorted, so that equal sets give equal bytes.
    case set(Set<ParameterValue>)
    /// Values by name. They are written in the order of their names.
    case object([String: ParameterValue])

    /// How deep values may be nested, arrays, sets and objects counted: 100.
    ///
    /// It stops an object that contains itself from filling the stack.
    public static let depthLimit = 100

    /// The tree of a value.
    ///
    /// Dates, data, decimal numbers, URLs and Swift's sets stay what they are, whatever their own way to be encoded. Absent
    /// optionals are left out by encoders that Swift makes; one that is written with `encodeNil` is ``null``. A key that is
    /// encoded twice has its last value.
    ///
    /// - Throws: A ``ParameterError`` with the path of the value; what the value's own `encode(to:)` throws, as it is.
    public init(encoding value: some Encodable) throws { self = try ParameterEncoder.value(of: value) }
}

extension ParameterValue: Encodable {
    /// Writes the tree as what it stands for: objects, arrays and plain values. Sets are arrays, in the order of
    /// ``QueryEncoding``.
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

    /// Refuses what no format can hold.
    /// - Parameter allowsNull: Whether ``null`` may stand below the top.
    func check(allowsNull: Bool = true) throws(ParameterError) {
        try check(at: ParameterPath(), allowsNull: allowsNull)
    }

    private func check(at path: ParameterPath, allowsNull: Bool) throws(ParameterError) {
        switch self {
        case .null: if !allowsNull { throw ParameterError(.nullNotAllowed, at: path) }
        case .number(let value): guard value.isFinite else { throw ParameterError(.notFinite, at: path) }
        case .decimal(let value): guard !value.isNaN else { throw ParameterError(.notFinite, at: path) }
        case .date(let value):
            guard value.timeIntervalSince1970.isFinite else {
                throw ParameterError(.dateOutOfRange, at: path)
            }
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

extension ParameterValue: ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByNilLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    /// A text.
    public init(stringLiteral value: String) { self = .string(value) }

    /// A whole number.
    public init(integerLiteral value: Int) { self = .integer(value) }

    /// A number.
    public init(floatLiteral value: Double) { self = .number(value) }

    /// Yes or no.
    public init(booleanLiteral value: Bool) { self = .bool(value) }

    /// Nothing.
    public init(nilLiteral: ()) { self = .null }

    /// Values in order.
    public init(arrayLiteral elements: ParameterValue...) { self = .array(elements) }

    /// Values by name; of two with one name the last counts.
    public init(dictionaryLiteral elements: (String, ParameterValue)...) {
        self = .object(Dictionary(elements) { _, last in last })
    }
}
