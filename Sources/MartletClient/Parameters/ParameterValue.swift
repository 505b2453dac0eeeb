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
    public init(encoding value: some Encodable) throws {
        self = try ParameterEncoder.value(of: value)
    }
}
