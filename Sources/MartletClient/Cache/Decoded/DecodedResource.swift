/// What a value is decoded from, as far as the request decides it: where it is, who asks with which fields, and in which
/// form the body comes.
struct DecodedResource: Hashable, Sendable {
    /// The request.
    let request: HTTPRequest
    /// The URL with its name and password; `nil` where it has none.
    let secretURL: HTTPURL?
    /// Whether content codings are undone, as the options say.
    private let decompresses: Bool?
    /// Whether the body comes as it stands on the wire.
    private let isRaw: Bool
    /// Whether it ends with the connection, whatever is said of its length.
    private let ignoresContentLength: Bool
    /// What is not sent: `Accept-Encoding`, say, on which the body's form depends.
    private let omittedFields: Set<HTTPField.Name>

    /// What a request with these options asks for.
    init(_ request: HTTPRequest, secretURL: HTTPURL? = nil, options: RequestOptions) {
        self.request = request
        self.secretURL = secretURL
        decompresses = options.decompresses
        isRaw = options.isRaw
        ignoresContentLength = options.ignoresContentLength
        omittedFields = options.omittedFields
    }

    /// Whether it is at the URL of a request, whatever the method and the fields are.
    func isAtURL(of other: HTTPRequest) -> Bool {
        request.path == other.path && request.authority == other.authority && request.scheme == other.scheme
    }
}
