import HTTPTypes
import Martlet

extension BatchRequest {
    /// What the call does otherwise than its session.
    /// - Parameter fields: Given what the policies want to be sent along.
    func policies(_ fields: inout HTTPFields) -> RequestOptions {
        var options = RequestOptions(
            timeouts: Timeouts(total: timeout), bodyLimit: bodyLimit.map { ByteCount($0) },
            decompresses: decompresses)
        options.version = version
        options.omittedFields = headers.omitted
        options.cacheMode = cacheMode
        if followsRedirects {
            var policy = RedirectPolicy.follow(limit: redirectLimit)
            // As with curl, which goes where it is sent: what is secret stays behind anyway.
            policy.allowsDowngrade = true
            policy.statusesThatKeepMethod = statusesThatKeepMethod
            policy.trustsOtherOrigins = trustsOtherOrigins
            policy.schemes = redirectSchemes
            options.redirects = policy
        }
        if let identity {
            let isForAll = followsRedirects && trustsOtherOrigins
            options.authentication = isForAll ? identity.settingsForAll(&fields) : identity.settings
        }
        if retryCount > 0 { options.retry = .transient(attempts: retryCount + 1, budget: nil) }
        return options
    }
}
