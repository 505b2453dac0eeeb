import MartletTransport

/// The proxies that the process's environment names, as they were when the session was made.
///
/// `http_proxy` counts in lower case alone: in a CGI program `HTTP_PROXY` is what a client sent as its `Proxy` field, and
/// would let that client choose the proxy (CVE-2016-5385). `https_proxy`, `all_proxy` and `no_proxy` count in both cases,
/// the lower first. A variable that is empty is none.
struct ProxyEnvironment: Sendable {
    /// A variable and what it names.
    struct Variable: Sendable {
        let name: String
        let server: Result<ProxyServer, HTTPURL.ParseError>
    }

    /// For `http` URLs; `nil` where there is none.
    let http: Variable?
    /// For `https` URLs; likewise.
    let https: Variable?
    /// The servers reached without.
    let bypass: ProxyBypass

    /// Reads the variables.
    /// - Parameter value: Gives the value of a variable; `nil` when it is not set, or empty.
    init(reading value: (String) -> String? = { ProcessEnvironment.value(of: $0) }) {
        func first(_ names: String...) -> Variable? {
            for name in names {
                guard let text = value(name), !text.isEmpty else { continue }
                do throws(HTTPURL.ParseError) {
                    return Variable(name: name, server: .success(try ProxyServer(text)))
                } catch {
                    return Variable(name: name, server: .failure(error))
                }
            }
            return nil
        }
        http = first("http_proxy", "all_proxy", "ALL_PROXY")
        https = first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
        bypass = ProxyBypass(value("no_proxy") ?? value("NO_PROXY") ?? "")
    }

    /// Whether it names no proxy at all.
    var isEmpty: Bool { http == nil && https == nil }

    /// The proxy for a URL.
    /// - Parameter heedsExceptions: Whether `no_proxy` counts.
    /// - Throws: `.proxyFailed` where the variable that applies cannot be read.
    func proxy(for url: HTTPURL, heedsExceptions: Bool = true) throws(HTTPError) -> ProxyServer? {
        guard let variable = url.scheme == .https ? https : http,
            !heedsExceptions || !bypass.contains(host: url.host, port: url.port)
        else { return nil }
        switch variable.server {
        case .success(let server): return server
        case .failure(let error):
            throw HTTPError(
                .proxyFailed, phase: .preparing,
                message: "the variable \(variable.name) names no proxy that can be used: \(error)",
                origin: url.origin.description, underlying: error)
        }
    }
}
