public import FoundationEssentials

/// The forms of names and dates in JSON.
public enum JSONForm {
    /// The naming of members in JSON.
    public enum Keys: String, Hashable, Sendable, Codable, CaseIterable {
        /// The unchanged names of the coding keys.
        case unchanged
        /// Snake case: `firstName` in Swift is `first_name` in JSON.
        case snakeCase

        package var strategy: JSONEncoder.KeyEncodingStrategy {
            self == .snakeCase ? .convertToSnakeCase : .useDefaultKeys
        }

        /// Creates the form of a key strategy; `nil` for a closure.
        package init?(_ strategy: JSONEncoder.KeyEncodingStrategy) {
            switch strategy {
            case .useDefaultKeys: self = .unchanged
            case .convertToSnakeCase: self = .snakeCase
            default: return nil
            }
        }
    }

    /// The form of dates in JSON.
    public enum Dates: String, Hashable, Sendable, Codable, CaseIterable {
        /// Seconds since 2001, the default of `JSONEncoder` and `JSONDecoder`.
        case secondsSince2001
        /// Text such as `2026-07-31T12:00:00Z` (RFC 3339). Fractions of a second are decoded, but not encoded.
        case iso8601
        /// Seconds since 1970-01-01, as a number.
        case secondsSince1970
        /// Milliseconds since 1970-01-01, as a number.
        case millisecondsSince1970

        package var strategy: JSONEncoder.DateEncodingStrategy {
            switch self {
            case .secondsSince2001: .deferredToDate
            case .iso8601: .iso8601
            case .secondsSince1970: .secondsSince1970
            case .millisecondsSince1970: .millisecondsSince1970
            }
        }

        /// Creates the form of a date strategy; `nil` for a closure.
        package init?(_ strategy: JSONEncoder.DateEncodingStrategy) {
            switch strategy {
            case .deferredToDate: self = .secondsSince2001
            case .iso8601: self = .iso8601
            case .secondsSince1970: self = .secondsSince1970
            case .millisecondsSince1970: self = .millisecondsSince1970
            default: return nil
            }
        }
    }
}

/// An encoder of values as the bodies of requests.
///
/// It is a value without mutable state: many tasks may use it concurrently.
public struct BodyEncoder: Sendable {
    private var keys = JSONForm.Keys.unchanged
    private var dates = JSONForm.Dates.secondsSince2001
    private var custom: JSONEncoder?
    /// Whether the program chose the encoder; `false` for the session's default.
    package private(set) var isChosen = false

    /// Creates the default encoder of a session.
    package init() {}

    /// Creates a JSON encoder. It sorts the names of each object, so that equal values give equal bytes.
    /// - Parameters:
    ///   - keys: The naming of members; unchanged by default.
    ///   - dates: The form of dates; as `JSONEncoder` by default.
    public static func json(keys: JSONForm.Keys = .unchanged, dates: JSONForm.Dates = .secondsSince2001) -> BodyEncoder
    {
        var encoder = BodyEncoder()
        (encoder.keys, encoder.dates, encoder.isChosen) = (keys, dates, true)
        return encoder
    }

    /// Creates a JSON encoder from a `JSONEncoder`, which must not be changed afterwards.
    public static func json(_ encoder: JSONEncoder) -> BodyEncoder {
        var chosen = BodyEncoder()
        (chosen.custom, chosen.isChosen) = (encoder, true)
        return chosen
    }

    package var keyStrategy: JSONEncoder.KeyEncodingStrategy { custom?.keyEncodingStrategy ?? keys.strategy }

    package var dateStrategy: JSONEncoder.DateEncodingStrategy { custom?.dateEncodingStrategy ?? dates.strategy }

    /// The `JSONEncoder` for values.
    package var json: JSONEncoder {
        if let custom { return custom }
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.keyEncodingStrategy = keys.strategy
        encoder.dateEncodingStrategy = dates.strategy
        return encoder
    }

    /// Encodes a value.
    /// - Throws: The errors of the value and of `JSONEncoder`.
    package func bytes(of value: some Encodable) throws -> [UInt8] { Array(try json.encode(value)) }
}

/// A decoder of values from the bodies of responses.
///
/// It is a value without mutable state: many tasks may use it concurrently.
public struct BodyDecoder: Sendable {
    private var keys = JSONForm.Keys.unchanged
    private var dates = JSONForm.Dates.secondsSince2001
    private var custom: JSONDecoder?

    /// Creates a JSON decoder. The parameters are those of ``BodyEncoder/json(keys:dates:)``.
    public static func json(keys: JSONForm.Keys = .unchanged, dates: JSONForm.Dates = .secondsSince2001) -> BodyDecoder
    { BodyDecoder(keys: keys, dates: dates) }

    /// Creates a JSON decoder from a `JSONDecoder`, which must not be changed afterwards.
    public static func json(_ decoder: JSONDecoder) -> BodyDecoder { BodyDecoder(custom: decoder) }

    /// Decodes the value of a document.
    /// - Throws: The errors of the value and of `JSONDecoder`.
    package func value<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        if let custom { return try custom.decode(type, from: data) }
        let decoder = JSONDecoder()
        if keys == .snakeCase { decoder.keyDecodingStrategy = .convertFromSnakeCase }
        decoder.dateDecodingStrategy =
            switch dates {
            case .secondsSince2001: .deferredToDate
            case .iso8601: .custom(BodyDecoder.date)
            case .secondsSince1970: .secondsSince1970
            case .millisecondsSince1970: .millisecondsSince1970
            }
        return try decoder.decode(type, from: data)
    }

    /// Decodes a date with or without a fraction of a second. `JSONDecoder`'s `.iso8601` accepts no fractions.
    @Sendable private static func date(_ decoder: any Decoder) throws -> Date {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.utf8.contains(UInt8(ascii: ".")))
        guard let date = try? style.parse(text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "the date is not in ISO 8601")
        }
        return date
    }
}

/// The settings of a session that exchanges retain. A program may store an exchange for a long time, so it must not
/// retain the session's other objects, such as a cache.
final class ResponseCoding: Sendable {
    let decoder: BodyDecoder
    private let errors: ErrorMapper?

    init(_ configuration: SessionConfiguration) {
        decoder = configuration.decoder
        errors = configuration.errors
    }

    /// Returns the error that the mapper returns for `error`; without a mapper, `error` itself.
    func mapped(_ error: any Error) -> any Error { errors?.error(for: error) ?? error }
}

extension HTTPExchange {
    /// The decoder and error mapper of the session or host.
    var coding: ResponseCoding { storage.coding }

    /// Decodes the body as JSON if the status is in `status`, 2xx by default, and the content type is acceptable.
    ///
    /// ```swift
    /// let user: User = try await session.get("https://api.example.com/users/1").decode()
    /// let users = try await api.get("users").decode([User].self)
    /// let problem = try error.exchange?.decode(Problem.self, status: 400..<600)
    /// ```
    ///
    /// The decoder is that of the host or session (``SessionConfiguration/decoder``), unless one is given. Acceptable
    /// content types are `application/json`, `text/json`, `text/javascript`, any type that ends with `+json`, and a
    /// missing type; also `text/plain` and `application/octet-stream`, which many servers and buckets use for JSON.
    /// Other types, such as HTML, are rejected without decoding the body.
    ///
    /// - Throws: An ``HTTPError`` with this exchange and the code `.unacceptableStatus`, `.unacceptableContentType` or
    ///   `.decodingFailed`, or the error that ``SessionConfiguration/errors`` maps it to. The message of
    ///   `.decodingFailed` has the coding path and up to 256 bytes of the body, or reports an empty body, as with a
    ///   204; its ``HTTPError/underlying`` is the `DecodingError`.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: JSONDecoder? = nil, status: Range<Int> = 200..<300
    ) throws -> Value { try decode(type, using: decoder.map { .json($0) } ?? coding.decoder, status: status) }

    /// Decodes the body as JSON with a decoder such as `.json(keys: .snakeCase)`; otherwise like the function above.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: BodyDecoder, status: Range<Int> = 200..<300
    ) throws -> Value {
        try checked {
            let subject = ValidationSubject(self)
            try subject.checkStatus(status.isEmpty ? [] : [ClosedRange(status)])
            if storage.head.fields.firstValue(of: "content-type") != "application/json" {
                try subject.checkContentType(HTTPExchange.typesOfJSON, takesUntyped: true, shows: self)
            }
            return try decoder.value(type, from: Data(body))
        }
    }

    /// The content types that servers use for JSON.
    static let jsonContentTypes = ["application/json", "text/json", "text/javascript", "application/*+json"]
    private static let typesOfJSON = MediaRangeList(jsonContentTypes + ["text/plain", "application/octet-stream"])

    /// The result type of `decode()` without a type, which does not compile.
    public struct ValueWithoutType: Sendable {}

    /// Matches `decode()` without a type, so that the compiler's message explains what is missing.
    @available(
        *, unavailable, message: "name the type of the value: decode(User.self), or let user: User = try … .decode()"
    ) public func decode() throws -> ValueWithoutType { ValueWithoutType() }

    /// Decodes the response if its status is in `status` and the decoder accepts its content type
    /// (``ResponseDecoder/acceptableContentTypes``).
    ///
    /// ```swift
    /// let user = try await session.get(url).decode(using: .propertyList(User.self))
    /// let problem = try exchange.decode(using: .json(Problem.self), status: 400..<600)
    /// ```
    ///
    /// A response without `Content-Type` is decoded (RFC 9110 §8.3).
    /// - Throws: The errors of `decode(_:using:)`, with the decoder's error as the underlying one; `CancellationError`.
    public func decode<Decoder: ResponseDecoder>(using decoder: Decoder, status: Range<Int> = 200..<300) throws
        -> Decoder.Output
    {
        try checked {
            let subject = ValidationSubject(self)
            try subject.checkStatus(status.isEmpty ? [] : [ClosedRange(status)])
            try subject.checkContentType(of: decoder)
            return try decoder.decode(self)
        }
    }

    /// Returns the exchange if the status is 2xx.
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange, or the error that
    ///   ``SessionConfiguration/errors`` maps it to.
    @discardableResult public func validated() throws -> HTTPExchange {
        try checked {
            try ValidationSubject(self).checkStatus([200...299])
            return self
        }
    }

    /// Runs code that evaluates the response. Its errors become mapped errors of the request.
    func checked<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw failure(error) }
    }

    @inline(never) private func failure(_ error: any Error) -> any Error {
        if error is CancellationError { return error }
        // Decoders report an empty body with different messages, so this one replaces them.
        let message =
            body.isEmpty
            ? "there is no value to decode: the response was \(outline(byteCount: nil)), without a body"
            : "\(DecodingErrorText.text(of: error, in: "the body")); the response was \(outline), \(beginning)"
        return mapped(
            error as? HTTPError
                ?? HTTPError(
                    .decodingFailed, phase: .processingResponse, message: message, wasSent: true,
                    method: storage.method, url: url, attempts: metrics.attempts, underlying: error, exchange: self))
    }

    func mapped(_ error: any Error) -> any Error { mapsErrors ? coding.mapped(error) : error }

    /// The status, the content type and the size of the body, such as `404 Not Found (application/json, 58 bytes)`.
    var outline: String { outline(byteCount: UInt64(body.count)) }

    func outline(byteCount: UInt64?) -> String {
        let type = storage.head.fields.firstValue(of: "content-type").map { field in
            MediaType(field)?.essence ?? "invalid content type"
        }
        let parts = [type, byteCount.map { "\($0) bytes" }].compactMap { $0?.prefix(100) }
        let reason = DecodingErrorText.beginning(of: storage.head.reason.utf8, limit: 100)
        return "\(statusCode)\(reason.isEmpty ? "" : " \(reason)")"
            + (parts.isEmpty ? "" : " (\(parts.joined(separator: ", ")))")
    }

    /// The first bytes of the body, for an error message.
    var beginning: String {
        body.isEmpty ? "without a body" : "and its body begins with: \(DecodingErrorText.beginning(of: body))"
    }
}

/// A decoder of the values in a body, such as its lines. It may outlive the call, which it does not retain.
package final class PartDecoder: Sendable {
    private let coding: ResponseCoding
    private let call: (method: HTTPRequest.Method, url: HTTPURL, status: Int)?

    /// Creates the decoder of the parts of a body, with the settings of the host or session.
    package init(_ body: ResponseBody) {
        let call = body.reader.call
        coding = call.settings.coding
        self.call = (call.method, call.url, body.reader.answer.head.status)
    }

    /// Creates a decoder of parts without a response, with the default settings.
    package init() {
        coding = ResponseCoding(.default)
        call = nil
    }

    /// Decodes one part of the body.
    /// - Parameter name: The name of the part in messages, such as `line 3`.
    /// - Throws: An ``HTTPError`` with the code `.decodingFailed`, or the error that the error mapper returns.
    package func value<Value: Decodable>(
        _ type: Value.Type, from bytes: some Collection<UInt8>, _ name: @autoclosure () -> String
    ) throws -> Value {
        do { return try coding.decoder.value(type, from: Data(bytes)) } catch {
            // The name may contain that of an event, which the server chooses.
            let name = DecodingErrorText.beginning(of: name().utf8)
            throw coding.mapped(
                HTTPError(
                    .decodingFailed, phase: .processingResponse,
                    message:
                        "\(DecodingErrorText.text(of: error, in: name)); \(name) begins with: \(DecodingErrorText.beginning(of: bytes))",
                    wasSent: true, method: call?.method, url: call?.url, status: call?.status, underlying: error))
        }
    }
}
