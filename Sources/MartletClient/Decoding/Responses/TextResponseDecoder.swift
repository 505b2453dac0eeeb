/// Makes text of a body: by its byte order mark, else the `charset` of `Content-Type`, else as UTF-8.
///
/// It knows UTF-8, UTF-16, UTF-32, windows-1252 (which ISO-8859-1 and US-ASCII mean on the web) and ISO-8859-15, under all
/// their names (WHATWG Encoding).
public struct TextResponseDecoder: ResponseDecoder {
    /// Whether what makes no sense is an error.
    private let isStrict: Bool

    /// A decoder.
    /// - Parameter isStrict: Whether a charset that is not known, and bytes that make no sense, are errors. By default the
    ///   one is read as UTF-8, and the others become U+FFFD, as ``HTTPExchange/text`` has it.
    public init(isStrict: Bool = false) {
        self.isStrict = isStrict
    }

    /// The body's text.
    /// - Throws: When strict, ``ResponseDecodingError/unknownCharset(_:)`` and
    ///   ``ResponseDecodingError/malformedText(charset:offset:)``.
    public func decode(_ exchange: HTTPExchange) throws -> String {
        guard isStrict else { return exchange.text }
        let field = exchange.response.headerFields[.contentType]
        let charset = field.flatMap { MediaType($0) }?.charset
        guard let charset else { return try TextDecoding().strictText(from: exchange.body) }
        guard let encoding = TextDecoding.Encoding(label: charset) else {
            throw ResponseDecodingError.unknownCharset(charset)
        }
        return try TextDecoding(encoding).strictText(from: exchange.body)
    }
}

extension ResponseDecoder where Self == TextResponseDecoder {
    /// The body as text, what makes no sense replaced by U+FFFD.
    public static var text: TextResponseDecoder { TextResponseDecoder() }
    /// The body as text, or an error that names the byte which makes no sense.
    public static var strictText: TextResponseDecoder { TextResponseDecoder(isStrict: true) }
}
