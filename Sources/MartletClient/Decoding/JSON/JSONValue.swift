/// A value of JSON as a tree (RFC 8259): what an answer's body says, before it is anything else.
///
/// ```swift
/// let page = try await session.get(url).json
/// for post in page["posts"]?.arrayValue ?? [] { print(post["title"]?.stringValue ?? "–") }
/// let note: JSONValue = ["title": "Sea", "tags": ["blue", "wide"], "draft": nil]
/// ```
///
/// Numbers keep all their digits and objects the order of their members.
public enum JSONValue: Hashable, Sendable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number.
    case number(JSONNumber)
    /// A string.
    case string(String)
    /// An array.
    case array([JSONValue])
    /// An object.
    case object(JSONObject)

    /// How deep arrays and objects are nested before they are refused, unless told otherwise: as deep as Foundation's
    /// decoder goes. It stops texts of brackets alone, which are cheap to send and costly to hold.
    public static let defaultDepthLimit = 512

    /// Parses a text in UTF-8, strictly as RFC 8259 has it; only a byte order mark in front of it is skipped.
    ///
    /// Takes time linear in the text. Of members with one name the last counts. What is half of a surrogate pair is
    /// refused.
    /// - Parameter depthLimit: How deep arrays and objects may be nested, 0–1,024.
    /// - Throws: What is wrong, and at which byte.
    public init(
        parsing bytes: [UInt8], depthLimit: Int = JSONValue.defaultDepthLimit
    ) throws(JSONError) {
        var parser = JSONParser(bytes, depthLimit: depthLimit)
        self = try parser.parse()
    }

    /// Parses a text; else as ``init(parsing:depthLimit:)-([UInt8],_)``.
    public init(
        parsing text: String, depthLimit: Int = JSONValue.defaultDepthLimit
    ) throws(JSONError) {
        try self.init(parsing: Array(text.utf8), depthLimit: depthLimit)
    }

    /// A number; `null` for infinities and what is no number, which JSON does not have.
    public init(_ value: Double) {
        self = JSONNumber(value).map { .number($0) } ?? .null
    }

    /// An integer.
    public init(_ value: some FixedWidthInteger) {
        self = .number(JSONNumber(value))
    }

    /// Whether it is `null`.
    public var isNull: Bool { if case .null = self { true } else { false } }
    /// The truth value; `nil` where it is none.
    public var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
    /// The number; `nil` where it is none.
    public var numberValue: JSONNumber? { if case .number(let value) = self { value } else { nil } }
    /// The integer; `nil` where it is none, or none that fits.
    public var intValue: Int? { numberValue?.int }
    /// The number as a `Double`; `nil` where it is none, or beyond the largest.
    public var doubleValue: Double? { numberValue?.double }
    /// The string; `nil` where it is none.
    public var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    /// The elements; `nil` where it is no array.
    public var arrayValue: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    /// The members; `nil` where it is no object.
    public var objectValue: JSONObject? { if case .object(let value) = self { value } else { nil } }

    /// The value of a member; `nil` where it is no object, or has none of that name.
    public subscript(name: String) -> JSONValue? { objectValue?[name] }

    /// An element; `nil` where it is no array, or a shorter one.
    public subscript(index: Int) -> JSONValue? {
        guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
        return elements[index]
    }

    /// The value without members that are `null`, in all objects however deep; elements of arrays stay, `null` or not, since
    /// others stand behind them.
    public func removingNulls() -> JSONValue {
        switch self {
        case .null, .bool, .number, .string: self
        case .array(let elements): .array(elements.map { $0.removingNulls() })
        case .object(let members):
            .object(
                JSONObject(
                    members.lazy.filter { !$0.value.isNull }
                        .map { JSONObject.Member($0.name, $0.value.removingNulls()) }))
        }
    }
}
