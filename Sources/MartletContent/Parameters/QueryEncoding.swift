/// The rules by which parameters become a query or a form.
///
/// By default, `["tag": ["swift", "linux"], "done": true, "page": nil]` is `done=true&tag=swift&tag=linux`, as most
/// servers expect. ``bracketed`` has the rules of AFNetworking, for servers in PHP and Rails:
/// `done=1&page&tag[]=swift&tag[]=linux`.
///
/// - Names are sorted at each level by their Unicode scalars, upper case before lower case; canonically equivalent
///   texts count as equal. AFNetworking's `compare:` gives the same order for ASCII.
/// - The values of an object are named `outer[inner]`. The values of an array are named by ``arrays``. The values of a
///   set all have the set's name, and are sorted by their texts.
/// - Names, with their brackets, and values are percent-encoded in UTF-8, byte by byte, except letters, digits and
///   `-._~/?`: a query may contain `?` and `/` (RFC 3986 §3.4).
/// - Numbers have the fewest digits that parse to the same value; integers have no decimal point.
/// - Empty arrays, sets and objects are omitted. An empty name is written: `["": "x"]` is `=x`, as in `URLComponents`.
public struct QueryEncoding: Sendable {
    /// The names of the values of an array.
    public enum Arrays: String, Hashable, Sendable, Codable {
        /// Brackets: `a[]=1&a[]=2`, as in AFNetworking, PHP and Rails.
        case brackets
        /// Brackets with an index: `a[0]=1&a[1]=2`.
        case indexed
        /// The same name for each value: `a=1&a=2`.
        case repeated
        /// One value: `a=1,2`, with commas in values encoded; nested containers are rejected. Applies to sets, too.
        case commaSeparated
    }

    /// The form of Booleans in a query.
    public enum Booleans: String, Hashable, Sendable, Codable {
        /// The digits `1` and `0`, as in AFNetworking.
        case numeric
        /// The words `true` and `false`.
        case literal
    }

    /// The form of dates in a query.
    public enum Dates: String, Hashable, Sendable, Codable {
        /// ISO 8601, such as `2026-11-21T20:15:00Z`; a fraction of a second is dropped. Years 0 to 9999.
        case iso8601
        /// ISO 8601 with milliseconds, such as `2026-11-21T20:15:00.250Z`. Years 0 to 9999.
        case iso8601WithMilliseconds
        /// Seconds since 1970-01-01, with their fraction if they have one.
        case secondsSince1970
        /// Whole milliseconds since 1970-01-01.
        case millisecondsSince1970
    }

    /// The form of data in a query.
    public enum Bytes: String, Hashable, Sendable, Codable {
        /// Base64 (RFC 4648 §4), percent-encoded like other texts.
        case base64
        /// Base64 for URLs without padding (RFC 4648 §5).
        case base64URL
    }

    /// The form of null in a query.
    public enum Nulls: String, Hashable, Sendable, Codable {
        /// The name without `=`, as in AFNetworking.
        case bareKey
        /// The name followed by `=`.
        case emptyValue
        /// Nulls are omitted.
        case dropped
    }

    /// The form of names: of properties as well as of dictionary keys.
    public enum Keys: String, Hashable, Sendable, Codable {
        /// Names are not changed.
        case asIs
        /// Snake case: `userName` becomes `user_name`, `baseURLString` becomes `base_url_string`.
        case snakeCase
    }

    /// The names of the values of an array; the repeated name by default.
    public var arrays = Arrays.repeated
    /// The form of Booleans; `true` and `false` by default.
    public var booleans = Booleans.literal
    /// The form of dates; ISO 8601 by default.
    public var dates = Dates.iso8601
    /// The form of data; Base64 by default.
    public var data = Bytes.base64
    /// The form of a null; omitted by default.
    public var nulls = Nulls.dropped
    /// The form of names; unchanged by default.
    public var keys = Keys.asIs
    /// A function that writes the query, without `?`, instead of all the rules above. The call throws the function's
    /// errors. In a URL, characters that are not allowed in a query are percent-encoded afterwards.
    public var serializer: (@Sendable (ParameterValue) throws -> String)?

    /// Creates the default rules.
    public init() {}

    /// The rules of AFNetworking: `name[]` for values of arrays, `1` and `0` for Booleans, and a null without `=`.
    public static var bracketed: QueryEncoding {
        var encoding = QueryEncoding()
        encoding.arrays = .brackets
        encoding.booleans = .numeric
        encoding.nulls = .bareKey
        return encoding
    }

    /// Returns parameters as a query or a form; empty for no parameters.
    /// - Throws: A ``ParameterError``; the errors of ``serializer``.
    public func encoded(_ parameters: ParameterValue) throws -> String {
        if case .null = parameters { return "" }
        if let serializer { return try serializer(parameters) }
        return try QueryWriter.text(of: parameters, by: self)
    }

    /// Percent-encodes a name or a value for a query or a form, except letters, digits and `-._~/?`.
    public static func escaped(_ text: String) -> String {
        var bytes: [UInt8] = []
        QueryWriter.append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
