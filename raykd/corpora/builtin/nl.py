"""Dutch: names and sentence rules (see `grammar` for how they are written)."""

from raykd.corpora.builtin.grammar import Language

NAMES = {
    "first_f": """
    Aaltje, Anneke, Annelies, Betsy, Carla, Corrie, Doutzen, Elske, Femke, Fenna, Geertje, Greetje,
    Hanneke, Heleen, Ineke, Janneke, Jeltje, Jolanda, Josefien, Karin, Lieke, Linde, Maaike, Marijke,
    Mieke, Mirjam, Neeltje, Noor, Paris*, Petra, Roos, Saskia, Sietske, Tineke, Truus, Veerle, Wietske,
    Wilhelmina, Yvonne""",
    "first_m": """
    Arend, Barend, Bas, Bram, Cees, Cornelis, Dirk, Douwe, Evert, Floris, Frits, Geert, Gerrit, Gijs,
    Hendrik, Henk, Huib, Jaap, Jelle, Jeroen, Joost, Jordan*, Jurriaan, Kees, Klaas, Koen, Lodewijk,
    Maarten, Menno, Niels, Pieter, Reinier, Roelof, Sander, Sjoerd, Teun, Theo, Wessel, Willem, Wouter""",
    "last": """
    Aalbers, Bakker, Beekman, Berendsen, Blom, Boersma, Bosman, Brouwer, Buitenhuis, Coolen, Daalder,
    Dekker, Dijkstra, Doorn*, Eijkman, Fokker*, Geldermans, Groen, Haan, Haverkamp, Heineken*, Hendriks,
    Hoekstra, Hofman, Houten*, Huisman, Jansen, Kamphuis, Keizer, Kok, Koning, Kuiper, Laren*, Leeuw,
    Linden, Maas*, Meijer, Mulder, Naarden*, Nijland, Oosterhuis, Otterlo*, Philips*, Postma, Prins,
    Putten*, Rietveld, Ruiter, Schipper, Schouten, Slager, Smit, Snijders, Stokman, Timmerman, Tuinman,
    Veenstra, Verbeek, Vermeer, Visser, Vliet, Vos, Vries, Wagenaar, Wassenaar*, Washington*, Wijk,
    Willems, Winter, Wolters, Zeeman, Zijlstra, Zomer, Zwart""",
    "city": """
    Alkmaar, Almelo, Amersfoort, Amsterdam, Antwerpen, Apeldoorn, Arnhem, Assen, Bergen, Breda, Brugge,
    Delft, Den Bosch, Den Haag, Deventer, Doetinchem, Doorn*, Dordrecht, Eindhoven, Emmen, Enkhuizen,
    Enschede, Gent, Gouda, Groningen, Haarlem, Harlingen, Heerenveen, Hilversum, Hoorn, Houten*, Kampen,
    Kortrijk, Laren*, Leeuwarden, Leiden, Leuven, Lochem, Maastricht, Mechelen, Meppel, Middelburg,
    Naarden*, Nijmegen, Oostende, Oss, Otterlo*, Paris*, Putten*, Roermond, Rotterdam, Schiedam, Sneek,
    Terneuzen, Tiel, Tilburg, Utrecht, Venlo, Vlissingen, Washington*, Wassenaar*, Weert, Zaandam,
    Zutphen, Zwolle""",
    "country": """
    Argentinië, Australië, België, Brazilië, Canada, Chili, Denemarken, Duitsland, Egypte, Estland,
    Finland, Frankrijk, Griekenland, Ierland, IJsland, India, Italië, Japan, Jordanië, Kenia, Marokko,
    Mexico, Nieuw - Zeeland, Noorwegen, Oostenrijk, Peru, Polen, Portugal, Spanje, Suriname, Zweden""",
    "region": """
    Achterhoek, Brabant, Drenthe, Flevoland, Friesland, Gelderland, Henegouwen, Holland, Limburg,
    Lombardije, Overijssel, Salland, Twente, Vlaanderen, Wallonië, Zeeland""",
    "brand": """
    Aquafleur, Bataaf, Blauwvoet, Corvana, Deltakracht, Eemstaal, Fokker*, Gulden Vlies, Hanzestroom,
    Heineken*, Heldervoort, Ijsvogel, Jutberg, Kaasland, Landlust, Lichtveld, Merwestaal, Noordzon,
    Orange*, Ouderkerk, Philips*, Polderbank, Quadriga, Roodwaard, Santander*, Shell*, Siemens*,
    Sterrebos, Tasman, Tulpia, Uilenburg, Veldhuis, Waterman, Windvang, Zilverreiger, Zonneveld""",
    "river": """
    Aa, Amstel, Berkel, Dommel, Eem, IJssel, Leie, Linge, Maas*, Merwede, Rijn, Rotte, Schelde, Vecht,
    Waal""",
}

RULES = {
    "per": """5x {first} {last}
    3x {first} {particle} {last}
    2x {last}
    {Particle} {last}
    {first}
    {letter} {last}
    {letter} {particle} {last}
    {first} {last} - {last}""",
    "per_f": """2x {first_f} {last}
    2x {first_f} {particle} {last}
    {first_f}""",
    "per_m": """2x {first_m} {last}
    2x {first_m} {particle} {last}
    {first_m}""",
    "per_full": """{first} {last}
    {first} {particle} {last}""",
    "per_last": """2x {last}
    {Particle} {last}""",
    "first": """{first_f}
    {first_m}""",
    "particle": "3x van der\n3x van\n2x de\nvan den\nter\nten\nvan 't\nde la",
    "letter": "A.\nB.\nC.\nD.\nE.\nF.\nG.\nH.\nJ.\nK.\nL.\nM.\nN.\nP.\nR.\nS.\nT.\nW.",
    "loc": """5x {city}
    2x {country}
    2x {region}
    {loc_place}""",
    "loc_city": "{city}",
    "loc_land": "2x {country}\n{region}",
    "loc_river": "{river}",
    "loc_place": """{city} - Noord
    Nieuw - {city}
    Sint {first}
    Kasteel {last}
    {last} plein
    Oud - {city}
    Huis ter {last}
    Noord - {region}""",
    "org": """3x {company}
    {agency}
    {school}
    {brand}""",
    "org_firm": "4x {brand}\n3x {company}",
    "org_full": "{company}\n{school}\n{agency}",
    "org_school": "{school_de}",
    "org_office": "{agency_de}",
    "org_team": """3x {city}
    FC {city}
    Sparta {city}
    VV {city}
    Vitesse {last}
    {city} Boys""",
    "company": """2x {last} {suffix}
    {last} & {last}
    {brand} {suffix}
    {sector} {city}
    {sector} {last}
    Gebroeders {last}
    {sector} {particle} {last}""",
    "suffix": "BV\nNV\nGroep\n& Zonen\nHolding\nBeheer",
    "sector": "Brouwerij\nUitgeverij\nTheater\nZiekenhuis\nRederij\nDrukkerij\nBakkerij\nVerzekeringen\nMuseum",
    "school": "3x {school_de}\n{last} College\nOrkest van {city}",
    "school_de": """Universiteit {city}
    Hogeschool {city}
    Universiteit van {city}
    {first} {last} Stichting""",
    "agency": "3x {agency_de}\nMinisterie van {field}",
    "agency_de": """2x Gemeente {city}
    Rechtbank {city}
    Politie {city}
    Raad voor {field}""",
    "field": "Verkeer\nVolksgezondheid\nLandbouw\nJustitie\nVisserij\nEnergie\nWonen\nDefensie\nOnderwijs",
    "any": "{per_full}\n{loc_place}\n{org_full}",
    "day": "maandag\ndinsdag\nwoensdag\ndonderdag\nvrijdag\nzaterdag\nzondag",
    "month": "januari\nmaart\napril\nmei\njuni\naugustus\noktober\ndecember",
    "number": "twee\ndrie\nvier\nzeven\ntwaalf\n18\n25\n40\n120\n300\n2.500",
    "year": "1894\n1923\n1957\n1968\n1984\n1999\n2007\n2016\n2021",
    "age": "19\n27\n34\n41\n46\n52\n63\n78",
    "job": """arts
    bakker
    timmerman
    advocaat
    schrijver
    doelman
    visser
    smid
    historicus
    wethouder
    kok
    molenaar""",
    "people": "Duitsers\nkatholieken\nEuropeanen\nVikingen\nleraren\nboeren\nstudenten\nmatrozen\nburen",
    "adjective": "Duitse\nSpaanse\nNederlandse\nEuropese\nIerse\nFranse\nZweedse\nBelgische",
    "event": "Tweede Wereldoorlog\nKoude Oorlog\nElfstedentocht\nkerstvakantie\nTour de France",
    "thing": "museum\nstation\nziekenhuis\nkasteel\ntheater\nzwembad\nstadion\ngemeentehuis\npakhuis\ncafé",
    "topic": """de huren
    de belastingen
    de lonen
    de visserij
    de nieuwe snelweg
    nachttreinen
    schoon water
    de woningbouw""",
    "subject": """{per}
    {per}
    de {job} {per}
    meneer {per_last}
    mevrouw {per_last}
    professor {per_last}
    {per} ( {age} )
    {per} , {job} uit {loc_city} ,
    {org_firm}
    {org_firm}""",
    "sentence": """8x {Core} .
    {per} {said} : ' {Core} . '
    ' {Core} ' , {said} {per} .
    ' {Core} ' , {said} {per} van {org_firm} .
    ' {Core} ' , {said} {per} tegen {org_firm} .
    {loc_city} ( {org} ) - {Core} .
    {Core} , en {core} .
    {Core} , maar {core} .
    Volgens {per} is het zo : {core} .
    {Core} , aldus {per} .
    {Core} , meldt {org} .
    2x {Plain} .""",
    "said": "zei\nschreef\nverklaarde\nbenadrukte\nvond",
    "core": """{subject} verhuist van {loc_city} naar {loc_city}
    {subject} kwam {day} laat aan in {loc}
    {subject} wilde niet over {topic} praten
    {subject} geeft {subject} de schuld van de vertraging
    {subject} opent in {month} een {thing} in {loc}
    {subject} verkocht het oude {thing} voor {number} miljoen euro aan {org_firm}
    {per} werd in {year} geboren in {loc} en studeerde aan de {org_school}
    {per} trouwde met {per} in {loc_city}
    {per} , opgegroeid in {loc} , werkt nu voor {org_firm}
    {per} vertrok na {number} jaar bij {org_firm}
    {per} en {per} ontmoetten elkaar in {loc} tijdens de {event}
    {per_f} en haar broer {per_m} runnen een klein {thing} bij {loc_city}
    de roman is geschreven door {per} en gedrukt in {loc_city}
    niemand in {loc} had ooit van {per} gehoord
    niemand bij {org_firm} had ooit van {per} gehoord
    rechter {per_last} veroordeelde de man tot {number} jaar cel
    kapitein {per_last} bracht het schip veilig terug naar {loc_city}
    {per_last} scoorde twee keer toen {org_team} van {org_team} won
    {org_team} speelde {day} gelijk tegen {org_team}
    {org_team} won met {number} - 1 in {loc_city}
    {org_team} haalt {per_m} weg bij {org_team}
    aanhangers van {org_team} reisden met de bus naar {loc_land}
    de trainer van {org_team} , {per_m} , stapte op
    het aandeel {org_firm} daalde na het vertrek van {per}
    {org_firm} sluit de fabriek in {loc} en schrapt {number} banen
    {org_firm} en {org_firm} willen fuseren
    {org_firm} benoemt {per} tot voorzitter
    het personeel van {org_firm} staakt in {loc}
    een ingenieur van {org_firm} vond de fout
    het bestuur van {org_firm} vergaderde {day} in {loc_city}
    de burgemeester van {loc_city} bedankte {per} voor het cadeau
    de weg tussen {loc_city} en {loc_city} is afgesloten
    de trein uit {loc_city} had weer vertraging
    de vlucht naar {loc_land} ging niet door vanwege de sneeuw
    in {loc} en {loc} wordt zware regen verwacht
    de prijzen in {loc} stegen sneller dan in {loc}
    de president van {loc_land} bezoekt in {month} {loc_land}
    de kiezers in {loc} wezen het plan met {number} stemmen af
    bij een ongeluk in de buurt van {loc} raakten {number} mensen gewond
    de {loc_river} trad bij {loc_city} buiten haar oevers
    onderzoekers van de {org_school} bestudeerden {topic} in {loc}
    de {org_school} gaf een prijs aan {per}
    de {org_office} waarschuwde de inwoners van {loc} niet te zwemmen
    de {org_office} gaf {org_firm} een boete voor vervuiling van de {loc_river}
    een woordvoerder van de {org_office} wilde niet reageren
    in het {thing} lag een brief van {per} aan {per}
    een vrachtwagen van {org_firm} versperde {day} de weg naar {loc_city}
    een zekere {per_last} verkocht zijn aandelen in {org_firm}
    op heldere dagen zie je van hier {loc_land}
    de schilder {per_m} keerde nooit terug naar {loc}
    het standbeeld van {per} staat voor het {thing}
    er is de laatste tijd veel te doen over {any}
    de film gaat over {any}
    haar eerste boek schreef ze over {any}
    {any} is weer in het nieuws
    vannacht droomde ik van {any}
    {per} vroeg {per_last} of {org_firm} zou betalen
    {loc} is kleiner dan {loc_land}
    {loc} zit sinds {day} zonder stroom
    de advocaat van {per_last} noemde de aanklacht absurd
    de winst van {org_firm} verdubbelde in {loc_land}
    het oudste {thing} van {loc_city} brandde af
    de dochter van {per} , {per_f} , woont in {loc}
    duizenden mensen liepen door {loc_city} uit protest tegen {org_firm}""",
    "plain": """De {adjective} {job} verkocht zijn {thing} voor de {event}
    Op {day} spraken de {people} van het dorp over {topic}
    De {event} veranderde het leven van veel {people}
    De koning en de keizer aten samen bij de bakker
    De leeuw , de vos en de haan slapen in de winter
    De visser gaf de kok een groen boek en een roos
    Putten en sloten staan droog in {month}
    {number} {people} leerden Spaans in {month}
    Houten huizen zijn duurder dan {topic} , zei de {job}
    Moeder zegt dat Sinterklaas een {job} is
    De Tweede Kamer sprak {day} over {topic}
    De smid , de mulder en de schipper lachten
    De meeste {people} vieren Kerstmis en Pasen thuis
    Bergen afval lagen bij het {thing}
    Hoop en vreugde keerden in {month} terug in het {thing}
    Het Internet en de Bijbel werden besproken door {number} {people}
    Zwart is het {thing} , maar de {people} zijn trots
    Een ruiter , een prins en een hofman betraten het {thing}
    De Grondwet werd op een {day} in {month} aangenomen
    Winter en zomer werken de {people} aan {topic}""",
}

DUTCH = Language.written("nl", NAMES, RULES)
