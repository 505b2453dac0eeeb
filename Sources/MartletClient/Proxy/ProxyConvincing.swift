import MartletTransport
import MartletWire

/// The credentials of a request that is handed to a proxy: shown at once or when asked, and only to that proxy.
///
/// What the caller's own `Proxy-Authorization` says is left as it is.
struct ProxyConvincing {
    private let authenticator: any ProxyAuthenticator
    private let request: ProxyAuthenticationRequest
    private let body: HTTPBody

    /// `nil` where nobody is to be convinced.
    init?(call: Call, dialer: Dialer) {
        guard call.isForwarded, let proxy = call.proxy, proxy.credentials != nil,
            call.fields[.proxyAuthorization] == nil,
            call.settings.configuration.headers[.proxyAuthorization] == nil
        else { return nil }
        authenticator = dialer.settings.proxyAuthenticator
        request = ProxyAuthenticationRequest(
            proxy: proxy, method: call.method.rawValue, target: call.requestTarget)
        body = call.body
    }

    /// The field's value for a request that has not been refused.
    var unasked: String? { authenticator.unaskedValue(for: request) }

    /// The field's value for another try after a 407; `nil` where there is none, and the answer stands.
    func answer(to head: ResponseHead, refused: String?) -> String? {
        guard body.takeBack() else { return nil }
        return authenticator.value(
            answering: head.fields.values(of: "Proxy-Authenticate"), refused: refused, for: request)
    }
}
