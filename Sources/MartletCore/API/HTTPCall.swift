/// The namespace of the requests and responses that middleware handles.
public enum HTTPCall {
    /// A request with its head and body.
    public struct Request: Sendable {
        /// The head: method, URL and fields.
        public var head: HTTPRequest
        /// The body of the request.
        public var body: HTTPBody

        /// The method of the head.
        public var method: HTTPRequest.Method {
            get { head.method }
            set { head.method = newValue }
        }

        /// The URL of the head, without user info and fragment; `nil` after a change that makes it invalid.
        public var url: HTTPURL? { head.httpURL }

        /// The invalid fields of ``headers``. The valid fields are in ``head``.
        private var rejectedFields = HTTPHeaders()

        /// The header fields of the head. A field with an invalid name or value is not added to ``head``: ``HTTPNext``
        /// then throws an ``HTTPError`` with the code `.invalidHeader` and sends nothing.
        public var headers: HTTPHeaders {
            get {
                var headers = rejectedFields
                headers.fields = head.headerFields
                return headers
            }
            set {
                head.headerFields = newValue.fields
                rejectedFields = newValue
                rejectedFields.fields = HTTPFields()
            }
        }

        /// Creates a request from a head and a body.
        public init(_ head: HTTPRequest, body: HTTPBody = .none) { (self.head, self.body) = (head, body) }
    }

    /// A response with its head and body.
    public struct Response: HTTPResponseHead {
        /// A body that replaces the body from the network.
        enum Replacement: Sendable {
            case bytes([UInt8])
            case source(any RequestBodySource, length: UInt64?)
        }

        /// The head of the response: status and fields.
        public var head: HTTPResponse
        /// The response of the next stage; `nil` for a response that this middleware made.
        let answer: OpenMiddlewareResponse?
        var replacement: Replacement?
        /// The trailers of a response with a body in memory that a middleware made; `nil` for none.
        package var madeTrailers: HTTPFields?

        init(_ answer: OpenMiddlewareResponse) {
            head = HeadConversion.response(answer.answer.head)
            self.answer = answer
        }

        /// Creates a response with a body in memory. No request is sent for it.
        public init(_ head: HTTPResponse, body: some Sequence<UInt8> = []) {
            self.head = head
            answer = nil
            replacement = .bytes(Array(body))
        }

        /// The status of the response.
        public var status: HTTPResponse.Status {
            get { head.status }
            set { head.status = newValue }
        }

        /// The header fields of the head.
        public var headers: HTTPFields {
            get { head.headerFields }
            set { head.headerFields = newValue }
        }

        /// The URL of the response, without user info; `nil` for a response that this middleware made.
        public var url: HTTPURL? { answer?.answer.call.url }

        /// The source of the response: the network, a middleware, or a feature, such as `.cache`.
        public var source: HTTPExchange.Source { answer?.answer.source ?? .middleware }

        /// The action of the cache so far, like ``OpenResponse/cacheStatus``.
        public var cacheStatus: String? { answer?.answer.provenance?.cacheStatus }

        /// The body as received, with content codings decoded; `nil` for a response that this middleware made.
        ///
        /// The caller does not receive the part that the middleware reads. A middleware can read the body until it
        /// returns or calls `next` again. After that, only a sequence passed to ``setBody(_:length:)`` can read it.
        public var body: ResponseBody? { answer?.body }

        /// Replaces the body with bytes in memory.
        public mutating func setBody(_ bytes: some Sequence<UInt8>) { replacement = .bytes(Array(bytes)) }

        /// Replaces the body with a sequence, which is read at the caller's pace. The sequence may read ``body``.
        ///
        /// If the call is cancelled or its total timeout expires, the call ends without waiting for the sequence.
        /// - Parameter length: The length in bytes, if it is known.
        public mutating func setBody<Pieces: AsyncSequence & Sendable>(_ pieces: Pieces, length: UInt64? = nil)
        where Pieces.Element: Sequence<UInt8>, Pieces.AsyncIterator: SendableMetatype {
            replacement = .source(SequenceSource(pieces), length: length)
        }
    }
}
