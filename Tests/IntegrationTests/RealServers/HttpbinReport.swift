import Martlet

/// What httpbin says of a request it received.
struct HttpbinReport: Decodable {
    var url: String?
    var method: String?
    /// The body, where it was no form.
    var data: String?
    var form: [String: String]?
    var files: [String: String]?
    var headers: [String: String]?
    var cookies: [String: String]?
    var authenticated: Bool?
    var user: String?
    var token: String?
    var gzipped: Bool?
    var deflated: Bool?
    var brotli: Bool?
    /// The number of the line in a stream.
    var id: Int?
}

extension HTTPExchange {
    /// What httpbin says of the request.
    var httpbin: HttpbinReport {
        get throws { try decode() }
    }
}
