import MartletCore

/// How parameters become a query or a form: by default byte for byte as AFNetworking wrote them.
///
/// - Names are sorted, upper case before lower case: by their Unicode scalars, canonically equivalent texts being equal.
///   What is nested is sorted likewise. AFNetworking's `compare:` gives the same order for ASCII.
/// - An object's values are named `outer[inner]`, an array's `name[]`, a set's `name`, in the order of their texts.
/// - Names, with their brackets, and values are percent-encoded in UTF-8, all but letters, digits and `-._~/?`: a `?` and a
///   `/` may stand in a query (RFC 3986 §3.4). Every byte of a character is encoded alone, so that however a text is cut,
///   no cluster of characters comes apart.
/// - Yes is `1` and no is `0`. Numbers are as short as they read back the same, whole ones without a point.
/// - A null is its name without `=`. Empty arrays, sets and objects leave nothing.
public struct QueryEncoding: Sendable {
    /// How the values of an array are named.
    public enum Arrays: Hashable, Sendable {
        /// `a[]=1&a[]=2`, as AFNetworking, PHP and Rails.
        case brackets
        /// `a[0]=1&a[1]=2`.
        case indexed
        /// `a=1&a=2`.
        case repeated
        /// `a=1,2`, where commas of the values are encoded. Values must be plain ones; sets are written so too.
        case commaSeparated
    }

    /// How yes and no are written.
    public enum Booleans: Hashable, Sendable {
        /// `1` and `0`, as AFNetworking.
        case numeric
        /// `true` and `false`.
        case literal
    }

    /// How points in time are written.
    public enum Dates: Hashable, Sendable {
        /// As in `2026-11-21T20:15:00Z`; a fraction of a second is dropped. Years 0 to 9999.
        case iso8601
        /// As in `2026-11-21T20:15:00.250Z`.
        case iso8601WithMilliseconds
        /// Seconds since 1970, with their fraction where there is one.
        case secondsSince1970
        /// Whole milliseconds since 1970.
        case millisecondsSince1970
    }

    /// How bytes are written.
    public enum Bytes: Hashable, Sendable {
        /// Base64 (RFC 4648 §4), whose `+`, `/` and `=` are encoded like any other text's.
        case base64
        /// Base64 for URLs without padding (RFC 4648 §5).
        case base64URL
    }

    /// How a null is written.
    public enum Nulls: Hashable, Sendable {
        /// Its name alone, as AFNetworking.
        case bareKey
        /// Its name and `=`.
        case emptyValue
        /// Not at all.
        case dropped
    }

    /// How names are written, those of dictionaries as well as those of types.
    public enum Keys: Hashable, Sendable {
        /// As they are.
        case asIs
        /// `userName` as `user_name`, `baseURLString` as `base_url_string`.
        case snakeCase
    }

    /// How the values of an array are named; brackets by default.
    public var arrays = Arrays.brackets
    /// How yes and no are written; `1` and `0` by default.
    public var booleans = Booleans.numeric
    /// How points in time are written; ISO 8601 by default.
    public var dates = Dates.iso8601
    /// How bytes are written; Base64 by default.
    public var data = Bytes.base64
    /// How a null is written; its name alone by default.
    public var nulls = Nulls.bareKey
    /// How names are written; as they are by default.
    public var keys = Keys.asIs

    /// Writes parameters in place of all the rules above: the query, without `?`. What it throws is what the call throws.
    ///
    /// Characters that may not stand in a query are percent-encoded afterwards, where it goes into a URL.
    public var serializer: (@Sendable (ParameterValue) throws -> String)?

    /// The rules of AFNetworking.
    public init() {}

    /// The query, or the form, of parameters; empty for none.
    ///
    /// - Throws: A ``ParameterError``; what ``serializer`` throws.
    public func encoded(_ parameters: ParameterValue) throws -> String {
        if case .null = parameters { return "" }
        if let serializer { return try serializer(parameters) }
        return try QueryWriter.text(of: parameters, by: self)
    }

    /// A text as it stands in a query or a form: percent-encoded, all but letters, digits and `-._~/?`.
    public static func escaped(_ text: String) -> String {
        var bytes: [UInt8] = []
        QueryWriter.append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
