import Martlet

/// The report of httpbin on a request that it received.
struct HttpbinReport: Decodable {
    var url: String?
    var method: String?
    /// The body, unless it was a form.
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
    /// The report of httpbin on the request.
    var httpbin: HttpbinReport {
        get throws { try decode() }
    }
}
