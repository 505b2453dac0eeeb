import Martlet

/// What the options of `queue add` and `queue run` ask for that have no meaning for other commands.
struct QueueWish: Sendable {
    /// The queue's folder; `nil` for that of the user.
    var directory: String?

    // MARK: What is added

    /// The line that the request stands in; `nil` for that of its origin.
    var lane: String?
    /// What the request is called.
    var tag: String?
    /// By what the server knows a repetition.
    var key = OfflineSubmission.Key.automatic
    /// After which time the request is not sent any more.
    var expires: Duration?
    /// What becomes of the file of `-T`.
    var files = OfflineSubmission.FilePolicy.reference
    /// Fields that are secret, besides those that always are: their names in lower case.
    var secretNames: Set<String> = []

    // MARK: How it is run

    /// Whether it ends when nothing waits any more.
    var endsWhenEmpty = false
    /// Whether the page to which a redirect led counts as the response to the request.
    var acceptsRedirectedResults = false
    /// Whether a line is a JSON object.
    var isJSON = false
}
