public import FoundationEssentials

extension HTTPExchange {
    /// Decodes the body as JSON, provided that the status is 2xx. The content type is not looked at.
    ///
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange; the decoder's own error,
    ///   as it is.
    public func decode<Value: Decodable>(
        _ type: Value.Type = Value.self, using decoder: JSONDecoder = JSONDecoder()
    ) throws -> Value {
        try decoder.decode(type, from: Data(try validated().body))
    }

    /// Makes a value of the answer, provided that its status is one of these and its content type one that the decoder
    /// takes (``ResponseDecoder/acceptableContentTypes``).
    ///
    /// ```swift
    /// let settings = try await session.get(url).decode(using: .propertyList(Settings.self))
    /// let problem = try error.exchange?.decode(using: .json(Problem.self), status: 400..<600)
    /// ```
    ///
    /// An answer without `Content-Type` is decoded: what it is shows in its bytes (RFC 9110 §8.3).
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` or `.unacceptableContentType` that carries this
    ///   exchange; the decoder's own error, as it is.
    public func decode<Decoder: ResponseDecoder>(
        using decoder: Decoder, status: Range<Int> = 200..<300
    ) throws -> Decoder.Output {
        let subject = ValidationSubject(self)
        try subject.checkStatus(status.isEmpty ? [] : [ClosedRange(status)])
        try subject.checkContentType(of: decoder)
        return try decoder.decode(self)
    }

    /// The body as JSON, whatever the status and the content type say; all digits of numbers and the order of members are
    /// kept.
    /// - Throws: A ``JSONError`` that names the byte.
    public var json: JSONValue {
        get throws(JSONError) { try JSONValue(parsing: body) }
    }
}

extension ValidationSubject {
    /// Asks for a content type that a decoder takes.
    func checkContentType(of decoder: some ResponseDecoder) throws(HTTPError) {
        let types = decoder.acceptableContentTypes
        guard !types.isEmpty else { return }
        try checkContentType(MediaRangeList(types), takesUntyped: true)
    }
}
