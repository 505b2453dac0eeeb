import HTTPTypes
import Martlet
import MartletDownloads

/// Which downloads of a queue get what a command line says of who is calling: those that it names; all where it names none.
///
/// Nothing of it is written to the queue's directory: each run gets it anew.
struct DownloadAccess: Sendable {
    /// The options of the URLs that the command line names once.
    private let named: [String: DownloadOptions]
    /// All that it names.
    private let urls: Set<String>
    private let group: TransferOptions
    private let lines: HeaderLines
    private let caller: CallerPlan

    private static let secrets: [HTTPField.Name] = [.authorization, .proxyAuthorization, .cookie]

    /// Who gets what of a command line with these downloads.
    init(
        _ plans: [DownloadPlan], _ group: TransferOptions, _ caller: CallerPlan
    ) throws(UsageError) {
        let alike = Dictionary(grouping: plans) { $0.url.absoluteForm }
        named = alike.compactMapValues { $0.count == 1 ? $0.first?.options : nil }
        urls = Set(alike.keys)
        self.group = group
        self.caller = caller
        lines = try DownloadPlan.fields(of: group)
    }

    /// Gives a download what it is to have.
    /// - Returns: Whether it is one of the command line's own, which may also have its cookies and its certificate.
    func grant(_ plan: inout DownloadJob.Plan) -> Bool {
        let url = plan.url.absoluteForm
        if urls.isEmpty {
            grantAll(&plan)
            return true
        }
        guard urls.contains(url) else {
            plan.options.request.usesCookies = false
            return false
        }
        // One that is new has it already.
        guard let given = named[url] else { return true }
        for name in DownloadAccess.secrets where plan.options.headers[name] == nil {
            plan.options.headers[name] = given.headers[name]
        }
        if plan.options.request.authentication == nil {
            plan.options.request.authentication = given.request.authentication
        }
        plan.options.request.usesCookies = given.request.usesCookies
        return true
    }

    private func grantAll(_ plan: inout DownloadJob.Plan) {
        for name in Set(lines.fields.map(\.name)) { plan.options.headers[name] = nil }
        for field in lines.fields { plan.options.headers.append(field) }
        plan.options.request.omittedFields.formUnion(lines.omitted)
        plan.options.request.usesCookies = CookiePlan.isActive(group)
        caller.apply(to: &plan.options.request, &plan.options.headers, url: plan.url)
    }
}
