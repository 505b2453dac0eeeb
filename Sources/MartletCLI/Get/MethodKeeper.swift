import HTTPTypes
import Martlet

/// Keeps the method of `-X` through redirects, as curl does: whatever a redirect makes of the request, its body included,
/// the word stays.
struct MethodKeeper: HTTPInterceptor {
    /// The method.
    let method: HTTPRequest.Method

    func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest {
        var request = request
        request.method = method
        return request
    }
}
