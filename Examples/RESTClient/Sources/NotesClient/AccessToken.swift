import Martlet

/// A short-lived token, which the service issues for a refresh token (RFC 6749 §6).
struct AccessToken: Decodable {
    private struct Grant: Encodable {
        var grantType = "refresh_token"
        var refreshToken: String
    }

    var accessToken: String

    /// Requests a token.
    /// - Parameter service: The service, without credentials.
    static func request(from service: HTTPHost, with refreshToken: String) async throws -> String {
        let grant = Grant(refreshToken: refreshToken)
        return try await service.post("token", body: .json(grant)).decode(AccessToken.self).accessToken
    }
}
