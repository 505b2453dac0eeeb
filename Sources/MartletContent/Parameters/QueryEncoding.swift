/// The rules by which parameters become a query or a form.
///
/// By default, `["tag": ["swift", "linux"], "done": true, "page": nil]` is `done=true&tag=swift&tag=linux`, as most servers
/// expect. ``bracketed`` are the rules of AFNetworking, for servers in PHP and Rails: `done=1&page&tag[]=swift&tag[]=linux`.
///
/// - Names are sorted at each level by their Unicode scalars, upper case before lower case; canonically equivalent texts are
///   equal. AFNetworking's `compare:` gives the same order for ASCII.
/// - The values of an object are named `outer[inner]`. Those of an array are named by ``arrays``, and those of a set `name`, in
///   the order of their texts.
/// - Names, with their brackets, and values are percent-encoded in UTF-8, byte by byte, all but letters, digits and
///   `-._~/?`: a `?` and a `/` are allowed in a query (RFC 3986 §3.4).
/// - Numbers have the fewest digits that read back the same; integers have no point.
/// - Empty arrays, sets and objects are omitted.
public struct QueryEncoding: Sendable {
    /// The names of the values of an array.
    public enum Arrays: String, Hashable, Sendable, Codable {
        /// `a[]=1&a[]=2`, as AFNetworking, PHP and Rails.
        case brackets
        /// `a[0]=1&a[1]=2`.
        case indexed
        /// `a=1&a=2`.
        case repeated
        /// `a=1,2`, with commas of the values encoded. Values must be plain; sets are written the same way.
        case commaSeparated
    }

    /// The form of Booleans.
    public enum Booleans: String, Hashable, Sendable, Codable {
        /// `1` and `0`, as AFNetworking.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// The form of dates.
    public enum Dates: String, Hashable, Sendable, Codable {
        /// As in `2026-11-21T20:15:00Z`; a fraction of a second is dropped. Years 0 to 9999.
        case iso8601
        /// As in `2026-11-21T20:15:00.250Z`.
        case iso8601WithMilliseconds
        /// Seconds since 1970, with their fraction where there is one.
        case secondsSince1970
        /// Whole milliseconds since 1970.
        case millisecondsSince1970
    }

    /// The form of data.
    public enum Bytes: String, Hashable, Sendable, Codable {
        /// Base64 (RFC 4648 §4), percent-encoded like other texts.
        case base64
        /// Base64 for URLs without padding (RFC 4648 §5).
        case base64URL
    }

    /// The form of a null.
    public enum Nulls: String, Hashable, Sendable, Codable {
        /// Its name alone, as AFNetworking.
        case bareKey
        /// Its name and `=`.
        case emptyValue
        /// Nothing.
        case dropped
    }

    /// The form of names, of dictionaries as well as of types.
    public enum Keys: String, Hashable, Sendable, Codable {
        /// Unchanged.
        case asIs
        /// `userName` as `user_name`, `baseURLString` as `base_url_string`.
        case snakeCase
    }

    /// The names of the values of an array; the name repeated by default.
    public var arrays = Arrays.repeated
    /// The form of Booleans; `true` and `false` by default.
    public var booleans = Booleans.literal
    /// The form of dates; ISO 8601 by default.
    public var dates = Dates.iso8601
    /// The form of data; Base64 by default.
    public var data = Bytes.base64
    /// The form of a null; nothing by default.
    public var nulls = Nulls.dropped
    /// The form of names; unchanged by default.
    public var keys = Keys.asIs

    /// Writes the query, without `?`, in place of all the rules above. The call throws its errors. In a URL, characters that
    /// are not allowed in a query are percent-encoded afterwards.
    public var serializer: (@Sendable (ParameterValue) throws -> String)?

    /// Creates the default rules.
    public init() {}

    /// The rules of AFNetworking, byte for byte: `name[]` for the values of arrays, `1` and `0` for Booleans, and the name alone
    /// for a null.
    public static var bracketed: QueryEncoding {
        var encoding = QueryEncoding()
        encoding.arrays = .brackets
        encoding.booleans = .numeric
        encoding.nulls = .bareKey
        return encoding
    }

    /// The query, or the form, of parameters; empty for none.
    /// - Throws: A ``ParameterError``; the errors of ``serializer``.
    public func encoded(_ parameters: ParameterValue) throws -> String {
        if case .null = parameters { return "" }
        if let serializer { return try serializer(parameters) }
        return try QueryWriter.text(of: parameters, by: self)
    }

    /// A text of a query or a form, percent-encoded, all but letters, digits and `-._~/?`.
    public static func escaped(_ text: String) -> String {
        var bytes: [UInt8] = []
        QueryWriter.append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
