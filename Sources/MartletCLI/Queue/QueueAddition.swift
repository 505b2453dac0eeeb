import HTTPTypes
import Martlet

/// What is written to a queue, from the options of `queue add`.
struct QueueAddition: Sendable {
    /// The request.
    let request: HTTPRequest
    /// Its body.
    let body: HTTPBody
    /// How it stands in the queue.
    let submission: OfflineSubmission
    /// The fields that are secret besides those that always are.
    let secretFields: Set<HTTPField.Name>

    /// Reads the options. Blocks where they name files whose contents are part of the request.
    init(_ group: OptionGroup) throws(UsageError) {
        let (options, wish) = (group.transfer, group.queue)
        guard options.urls.count <= 1 else {
            throw UsageError("one request is added at a time: give one URL")
        }
        let plans = try TransferPlan.plans(for: options, from: 0, caller: CallerPlan())
        guard let plan = plans.first else {
            throw UsageError("no URL was given; try martlet queue add --help")
        }
        if let name = plan.options.omittedFields.map(\.rawName).sorted().first {
            throw UsageError(
                "\(name): that a field is left out is not kept with a request; give -H '\(name):' to “martlet queue run”"
            )
        }
        var request = plan.request
        if wish.key != .automatic, request.headerFields[.idempotencyKey] != nil {
            throw UsageError("options --key and --no-key: -H gives an Idempotency-Key already")
        }
        // Nothing is sent from here, and the value is not stored: only that there is one to be added.
        let hasCaller = options.user != nil || options.bearer != nil || plan.url.user != nil
        if hasCaller, request.headerFields[.authorization] == nil {
            request.headerFields[.authorization] = "-"
        }
        self.request = request
        body = plan.body
        submission = OfflineSubmission(
            lane: wish.lane, tag: wish.tag, key: wish.key, expires: wish.expires, files: wish.files)
        secretFields = Set(wish.secretNames.compactMap { HTTPField.Name($0) })
    }
}
