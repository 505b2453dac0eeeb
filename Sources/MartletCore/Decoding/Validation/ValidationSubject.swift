import MartletContent

/// An answer as validators look at it.
struct ValidationSubject: Sendable {
    /// What is known of the body's size.
    enum Size: Hashable, Sendable {
        /// It was collected.
        case collected(Int)
        /// It has not been read, and is to have so many bytes; `nil` where nobody knows.
        case announced(UInt64?)
    }

    /// The answer.
    let exchange: HTTPExchange
    /// The size of its body.
    let size: Size

    /// An answer with its body.
    init(_ exchange: HTTPExchange) {
        self.exchange = exchange
        size = .collected(exchange.body.count)
    }

    /// An answer whose body has not been read.
    init(_ exchange: HTTPExchange, announced: UInt64?) {
        self.exchange = exchange
        size = .announced(announced)
    }

    /// Asks one thing.
    /// - Throws: An ``HTTPError`` that carries the exchange; what a closure throws.
    func check(_ rule: ResponseValidator.Rule) async throws {
        switch rule {
        case .status(let ranges): try checkStatus(ranges)
        case .contentType(let list): try checkContentType(list)
        case .requestedContentType:
            var values = exchange.request.headerFields[values: .accept]
            if values.isEmpty, let accept = exchange.storage.defaultAccept { values = [accept] }
            let list = MediaRangeList(values)
            // A field without a single range says nothing.
            if !list.ranges.isEmpty { try checkContentType(list) }
        case .byteCount(let range): try checkSize(range)
        case .custom(let check): try await check(exchange)
        }
    }

    /// Asks for a status.
    func checkStatus(_ ranges: [ClosedRange<Int>]) throws(HTTPError) {
        guard !ranges.contains(where: { $0.contains(exchange.statusCode) }) else { return }
        throw refusal(
            .unacceptableStatus,
            "the status is \(exchange.response.status.code) \(exchange.response.status.reasonPhrase)")
    }

    /// Asks for a content type, unless the body has come and is empty: nothing is of no type, whatever the field says.
    /// - Parameter takesUntyped: Whether an answer that has no content type is taken whatever the list says.
    func checkContentType(_ list: MediaRangeList, takesUntyped: Bool = false) throws(HTTPError) {
        if size == .collected(0), exchange.storage.isBodyCollected { return }
        let wanted = list.ranges.map { "\($0.type)/\($0.subtype)" }.prefix(8).joined(separator: ", ")
        guard let field = exchange.response.headerFields[.contentType] else {
            if takesUntyped || isEmpty || list.acceptsUntyped { return }
            throw refusal(.unacceptableContentType, "the content type is missing, and not one of \(wanted)")
        }
        let type = MediaType(field)
        guard !(type.map(list.accepts) ?? list.acceptsUntyped) else { return }
        throw refusal(
            .unacceptableContentType,
            "the content type is “\(type?.essence ?? String(field.prefix(100)))”, and not one of \(wanted)")
    }

    private func checkSize(_ range: ClosedRange<Int>) throws(HTTPError) {
        let count: UInt64
        switch size {
        case .collected(let collected): count = UInt64(collected)
        case .announced(let announced):
            guard let announced else { return }
            count = announced
        }
        if count > UInt64(range.upperBound) {
            throw refusal(
                .bodyTooLarge, "the body has \(count) bytes, more than the \(range.upperBound) accepted")
        }
        if count < UInt64(range.lowerBound) {
            throw refusal(
                .unacceptableBody, "the body has \(count) bytes, fewer than the \(range.lowerBound) accepted")
        }
    }

    private var isEmpty: Bool { size == .collected(0) || size == .announced(0) }

    private func refusal(_ code: HTTPError.Code, _ message: String) -> HTTPError {
        HTTPError(
            code, phase: .evaluating, message: message, wasSent: true,
            origin: exchange.url.origin.description, attempts: exchange.metrics.attempts, exchange: exchange)
    }
}
