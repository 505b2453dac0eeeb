extension HTTPExchange {
    /// The exchange itself if the status is 2xx.
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus` that carries this exchange.
    public func validated() throws(HTTPError) -> HTTPExchange {
        try ValidationSubject(self).checkStatus([200...299])
        return self
    }

    /// The exchange itself if it is what all of these take. They are asked in this order.
    ///
    /// ```swift
    /// try await session.get(url).validated(.status(200..<300), .contentType("application/json"))
    /// ```
    /// - Throws: An ``HTTPError`` with the code `.unacceptableStatus`, `.unacceptableContentType`, `.bodyTooLarge` or
    ///   `.unacceptableBody` that carries this exchange; what a closure of a validator throws, as it is.
    public func validated(
        _ first: ResponseValidator, _ others: ResponseValidator...
    ) async throws -> HTTPExchange {
        let subject = ValidationSubject(self)
        try await first.check(subject)
        for validator in others { try await validator.check(subject) }
        return self
    }
}
