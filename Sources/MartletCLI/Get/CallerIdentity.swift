import FoundationEssentials
import HTTPTypes
import Martlet

/// Who calls: what a server that asks is answered, or told unasked.
struct CallerIdentity: Sendable {
    /// What proves it.
    enum Proof: Sendable {
        case password(user: String, password: String, scheme: Credentials.PasswordScheme)
        case bearer(String)
    }

    private let proof: Proof

    init(_ proof: Proof) {
        self.proof = proof
    }

    private var credentials: Credentials {
        switch proof {
        case .password(let user, let password, let scheme):
            Credentials(user: user, password: password, scheme: scheme)
        case .bearer(let token): .bearer(token)
        }
    }

    /// Settings for the origin that a call begins at, and for no other.
    var settings: AuthenticationSettings { AuthenticationSettings(credentials: credentials) }

    /// Settings for an origin, wherever a call begins.
    func settings(for origin: HTTPURL.Origin) -> AuthenticationSettings {
        AuthenticationSettings(credentialsByOrigin: [origin: credentials])
    }

    /// Settings for every origin that a call comes to, as `--location-trusted` wants it: what needs no challenge goes
    /// along as a field, which such redirects keep, and the rest answers whoever asks.
    ///
    /// - Parameter fields: Given the field, unless there is one.
    func settingsForAll(_ fields: inout HTTPFields) -> AuthenticationSettings {
        let credentials = credentials
        switch proof {
        case .password(let user, let password, .basic):
            let text = Data("\(user):\(password)".utf8).base64EncodedString()
            if fields[.authorization] == nil { fields[.authorization] = "Basic \(text)" }
        case .bearer(let token):
            if fields[.authorization] == nil { fields[.authorization] = "Bearer \(token)" }
        case .password:
            return AuthenticationSettings(attemptLimit: 1) { _ in credentials }
        }
        return AuthenticationSettings()
    }
}
