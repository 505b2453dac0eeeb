import MartletClient
import MartletTransport

/// Adds credentials to requests, and gets new ones once, however many requests were refused with the old ones.
actor CredentialKeeper {
    private let credentials: OfflineCredentials
    /// How often new ones were got.
    private var generation: UInt64 = 0
    private var renewal: Task<Void, any Error>?
    /// The closures that add credentials just now.
    private var authorizations: [UInt64: Task<HTTPRequest, any Error>] = [:]
    private var lastAuthorization: UInt64 = 0
    private var isCancelled = false

    init(_ credentials: OfflineCredentials) {
        self.credentials = credentials
    }

    /// A request with its credentials, and which ones they are.
    func authorize(_ request: HTTPRequest) async throws -> (request: HTTPRequest, generation: UInt64) {
        // Those that are being got are worth the wait.
        if let renewal { try await CredentialKeeper.wait(for: renewal) }
        guard !isCancelled else { throw CancellationError() }
        let (credentials, generation) = (credentials, generation)
        lastAuthorization += 1
        let number = lastAuthorization
        // Unstructured, so that the end of the queue can end the wait as well. Nothing has been sent yet.
        let authorization = Task {
            try await waitUnlessCancelled { try await credentials.authorize(request) }
        }
        authorizations[number] = authorization
        defer { authorizations[number] = nil }
        let made = try await withTaskCancellationHandler {
            try await authorization.value
        } onCancel: {
            authorization.cancel()
        }
        return (made, generation)
    }

    /// Gets new credentials in place of those a server refused, unless that has happened since.
    func renew(after refused: UInt64) async throws {
        if let renewal { return try await CredentialKeeper.wait(for: renewal) }
        guard refused == generation else { return }
        guard let refresh = credentials.refresh else {
            generation += 1
            return
        }
        // Unstructured, since whoever is first does it for all: that its request is cancelled must not take it from them. It
        // notes its own end, so that nobody goes on before that is done.
        let renewal = Task {
            defer { self.renewal = nil }
            try await waitUnlessCancelled { try await refresh() }
            generation += 1
        }
        self.renewal = renewal
        try await CredentialKeeper.wait(for: renewal)
    }

    /// Ends all waits for the program's closures, for good.
    func cancel() {
        isCancelled = true
        renewal?.cancel()
        for authorization in authorizations.values { authorization.cancel() }
    }

    /// Waits for a renewal, and no longer than the task that waits.
    private static func wait(for renewal: Task<Void, any Error>) async throws {
        let end = OneShot<Result<Void, any Error>>()
        Task { end.fulfil(await renewal.result) }
        let outcome = await end.waitUnlessCancelled(until: .distantFuture, on: .sharedOrStalled)
        guard case .value(let result) = outcome else { throw CancellationError() }
        try result.get()
    }
}
