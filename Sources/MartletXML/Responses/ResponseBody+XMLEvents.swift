public import MartletClient

extension ResponseBody {
    /// The events of a body that is XML, as they arrive: an `AsyncSequence`, pulled.
    ///
    /// Neither the status nor the content type is looked at. A body of any length takes the memory of its largest value,
    /// bounded by the limits.
    public struct XMLEvents: AsyncSequence, Sendable {
        /// An event.
        public typealias Element = XMLEvent

        let body: ResponseBody
        let parser: XMLEventParser

        /// One pass over the events.
        public struct Iterator: AsyncIteratorProtocol {
            private var body: ResponseBody.Iterator
            private var parser: XMLEventParser
            private var isEnded = false

            init(_ events: XMLEvents) {
                body = events.body.makeAsyncIterator()
                parser = events.parser
            }

            /// The next event; nil at the end of the document.
            ///
            /// When the task is cancelled it throws `CancellationError` at once, and the connection is closed.
            /// - Throws: An ``XMLError``, whereupon nothing more of the body is read; an `HTTPError`, as the body does.
            public mutating func next() async throws -> XMLEvent? {
                while true {
                    if let event = try parser.next() { return event }
                    if isEnded { return nil }
                    if let piece = try await body.next() {
                        parser.feed(piece)
                    } else {
                        isEnded = true
                        parser.finish()
                    }
                }
            }

            /// The next event; nil at the end of the document.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> XMLEvent? {
                try await next()
            }
        }

        /// A pass over what was not yet read.
        public func makeAsyncIterator() -> Iterator { Iterator(self) }
    }

    /// The events of a body that is XML, within the default limits, its encoding told by the body alone.
    public var xmlEvents: XMLEvents { xmlEvents() }

    /// The events of a body that is XML.
    ///
    /// - Parameters:
    ///   - response: The head that came with it: the `charset` of its `Content-Type` goes before the document's own
    ///     declaration (RFC 7303 §3.2). Without it the body alone tells.
    ///   - limits: What the document may have at most.
    ///   - doctype: What becomes of a document type.
    public func xmlEvents(
        of response: HTTPResponse? = nil, limits: XMLLimits = .default, doctype: XMLDoctypeRule = .skip
    ) -> XMLEvents {
        let charset = response?.headerFields[.contentType].flatMap { MediaType($0)?.charset }
        return XMLEvents(
            body: self, parser: XMLEventParser(charset: charset, limits: limits, doctype: doctype))
    }
}
