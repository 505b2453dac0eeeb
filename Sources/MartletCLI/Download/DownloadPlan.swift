import FoundationEssentials
import HTTPTypes
import Martlet
import MartletDownloads
import SystemPackage

/// One file of the command line, with all that its download needs.
struct DownloadPlan: Sendable {
    /// Its place among all, from 1.
    var number: Int
    /// Where it is, without user info.
    var url: HTTPURL
    var options: DownloadOptions
    /// Where it goes.
    var target: DownloadTarget
    /// What it is called before its name is known.
    var name: String

    /// Fields that a download sets itself.
    private static let ownFields: Set<HTTPField.Name> = [.range, .ifRange, .acceptEncoding]

    /// The plans of a command line: those of its URLs, then those of its lists.
    /// - Parameter lists: The entries of the lists.
    static func plans(
        for group: OptionGroup, lists: [DownloadListEntry], caller: CallerPlan
    ) throws(UsageError) -> [DownloadPlan] {
        let (transfer, wish) = (group.transfer, group.download)
        var entries: [DownloadListEntry] = []
        for given in transfer.urls {
            let text = try GivenURL.completed(given, takesBracesLiterally: transfer.takesBracesLiterally)
            entries.append(DownloadListEntry(place: "option -H", url: try GivenURL.parsed(text)))
        }
        if !transfer.destinations.isEmpty || wish.checksum != nil {
            let option = transfer.destinations.isEmpty ? "--checksum" : "-o"
            guard entries.count == 1, lists.isEmpty, transfer.destinations.count <= 1 else {
                throw UsageError("option \(option): goes with one URL; a list (-i) has a line for each")
            }
            if case .named(let name)? = transfer.destinations.first { entries[0].output = name }
            entries[0].checksum = wish.checksum
        }
        entries += lists
        guard !entries.isEmpty || wish.stateFolder != nil else {
            throw UsageError("no URL was given; try martlet download --help")
        }
        var plans: [DownloadPlan] = []
        for entry in entries { plans.append(try DownloadPlan(entry, group, number: plans.count + 1, caller)) }
        return plans
    }

    private init(
        _ entry: DownloadListEntry, _ group: OptionGroup, number: Int, _ caller: CallerPlan
    ) throws(UsageError) {
        let wish = group.download
        self.number = number
        url = entry.url.withoutUserInfo
        let folder = FilePath(wish.folder ?? ".")
        if let output = entry.output {
            let path =
                FilePath(output).isAbsolute
                ? FilePath(output)
                : wish.folder.map { FilePath($0) }.map { $0.pushing(FilePath(output)) } ?? FilePath(output)
            guard let name = path.lastComponent, name.kind == .regular, !output.hasSuffix("/") else {
                throw UsageError("“\(output)” names no file")
            }
            target = .file(path)
            self.name = name.string
        } else {
            target = .folder(folder)
            name = SuggestedFilename.of(contentDisposition: nil, url: entry.url) ?? RemoteName.placeholder
        }
        options = DownloadOptions(
            segments: wish.segments, checksum: entry.checksum, collision: wish.collision,
            resumption: wish.resumption,
            byteLimit: group.transfer.sizeLimit.map { ByteCount($0) } ?? .unlimited,
            keepsRemoteTime: wish.keepsRemoteTime)
        if let count = wish.retryCount { options.retry.attempts = count }
        if let delay = wish.retryDelay {
            options.retry.firstDelay = delay
            options.retry.longestDelay = max(delay, options.retry.longestDelay)
        }
        if let timeout = wish.stallTimeout {
            options.stallTimeout = min(max(timeout, .milliseconds(100)), .seconds(86400))
        }
        let lines = try DownloadPlan.fields(of: group.transfer, entry.headers)
        options.headers = lines.fields
        options.request.omittedFields = lines.omitted
        if let timeout = group.transfer.connectTimeout {
            options.request.timeouts = Timeouts(connect: timeout)
        }
        options.request.redirects = TransferPlan.redirects(group.transfer)
        options.request.usesCookies = CookiePlan.isActive(group.transfer)
        caller.apply(to: &options.request, &options.headers, url: entry.url)
    }

    /// A download that was found in a directory.
    init(_ download: Download, number: Int) {
        self.number = number
        url = download.url
        target = download.target
        name =
            download.path?.lastComponent?.string
            ?? SuggestedFilename.of(contentDisposition: nil, url: url) ?? RemoteName.placeholder
        // It has its own, which are kept with it.
        options = DownloadOptions()
    }

    /// The fields that a command line asks for, and the lines of a list.
    static func fields(
        of group: TransferOptions, _ more: [(place: String, line: String)] = []
    ) throws(UsageError) -> HeaderLines {
        var lines = try HeaderLines(group.headerLines)
        for (place, line) in more {
            do throws(UsageError) {
                try lines.add(line)
            } catch {
                throw UsageError("\(place): \(error.description.dropFirst("option -H: ".count))")
            }
        }
        for name in DownloadPlan.ownFields where lines.fields[name] != nil || lines.omitted.contains(name) {
            let place = more.first { $0.line.lowercased().hasPrefix(name.canonicalName) }?.place
            throw UsageError("\(place ?? "option -H"): a download has a \(name.rawName) of its own")
        }
        lines.setDefaults(group)
        return lines
    }

    /// The folder that must be there before it begins.
    var folder: FilePath {
        switch target {
        case .folder(let folder): folder
        case .file(let path): path.removingLastComponent()
        }
    }

    /// Makes the folder, and those above it, where they are missing.
    func makeFolder() async throws {
        let folder = folder.string
        guard !folder.isEmpty else { return }
        do {
            try await Console.attempt {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            }
        } catch {
            throw HTTPError(
                .fileFailed, phase: .preparing, message: "the folder “\(folder)” cannot be made: \(error)")
        }
    }
}

/// What the options that only `download` has ask for.
struct DownloadWish: Sendable {
    /// The most files at once that can be asked for.
    static let fileLimits = 1...256

    /// The folder of the files; `nil` for the working one.
    var folder: String?
    /// Files with lists of URLs; `-` is standard input.
    var lists: [String] = []
    /// Connections for a file.
    var segments = 4
    /// How many files come at once.
    var fileLimit = 3
    /// How many files come at once from one host.
    var fileLimitPerHost = 2
    /// What the one URL must come to.
    var checksum: Checksum?
    /// Bytes a second, all together.
    var rate: Int?
    /// What becomes of a file that is there.
    var collision = DownloadOptions.Collision.fail
    /// What becomes of what an earlier run left.
    var resumption = DownloadOptions.Resumption.automatic
    var keepsRemoteTime = false
    /// The folder of a queue that outlives the program.
    var stateFolder: String?
    var stallTimeout: Duration?
    /// How many failures in a row are borne; `nil` for what downloads bear by default.
    var retryCount: Int?
    var retryDelay: Duration?
}

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
    init(_ plans: [DownloadPlan], _ group: TransferOptions, _ caller: CallerPlan) throws(UsageError) {
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
