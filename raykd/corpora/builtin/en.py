"""English: names and sentence rules (see `grammar` for how they are written)."""

from raykd.corpora.builtin.grammar import Language

NAMES = {
    "first_f": """
    Alice, Amelia, Beatrice, Charlotte*, Clara, Daisy, Deborah, Edith, Eleanor, Emily, Fiona, Grace,
    Hannah, Harriet, Hazel, Imogen, Isla, Jasmine, Joyce, Judith, Lucy, Mabel, Margaret, Megan, Nora,
    Olive, Paris*, Phoebe, Rachel, Rosalind, Savannah*, Sienna, Sophie, Tamsin, Ursula, Victoria*, Wendy,
    Zoe""",
    "first_m": """
    Adrian, Albert, Angus, Arthur, Barnaby, Bernard, Callum, Cecil, Clive, Desmond, Dominic, Duncan,
    Edgar, Ethan, Fergus, Gareth, George, Gilbert, Harold, Hugh, Isaac, Jasper, Jordan*, Keith, Leonard,
    Lewis, Malcolm, Mark, Neville, Oliver, Percy, Quentin, Rupert, Simon, Stuart, Terence, Tobias,
    Wallace, Will, Winston""",
    "last": """
    Abbott, Ainsworth, Ashdown, Baker, Barlow, Beckett, Blackwood, Bradshaw, Brook, Burton*, Bush,
    Calloway, Carver, Chandler, Clifford, Cook, Crawford, Cromwell, Dalton, Dawson, Drummond, Ellsworth,
    Fairbanks, Farrow, Ford*, Fletcher, Gallagher, Garfield, Goodwin, Grantham*, Halloran, Harding,
    Hargreaves, Hawthorne, Hobbs, Holloway, Houston*, Jackson*, Jordan*, Kellogg, Kendrick, Lancaster*,
    Langley, Lincoln*, Lockwood, Marlowe, Mercer, Merriweather, Middleton, Montgomery*, Newcombe, Oakley,
    Osborne, Pemberton, Philips*, Prescott, Quinn, Radcliffe, Rose, Rutherford, Sheffield*, Sinclair,
    Stanton, Stone, Sterling, Thackeray, Thorne, Underhill, Vaughan, Wakefield*, Washington*,
    Wellington*, Whitaker, Winthrop, Woodward, Yates, York*, Young""",
    "city": """
    Aberdeen, Ashford, Baltimore, Bath, Belfast, Birmingham, Boston, Brighton, Bristol, Burton*,
    Cambridge, Canterbury, Cardiff, Charlotte*, Chester, Cleveland, Colchester, Cork, Coventry, Denver,
    Dublin, Durham, Edinburgh, Exeter, Galway, Gloucester, Grantham*, Hartford, Houston*, Hull,
    Inverness, Jackson*, Lancaster*, Leicester, Limerick, Lincoln*, Liverpool, London, Manchester,
    Melbourne, Milwaukee, Montgomery*, Newcastle, New Orleans, Northampton, Norwich, Nottingham, Oxford,
    Paris*, Perth, Plymouth, Portsmouth, Reading, Richmond, Salisbury, San Francisco, Savannah*, Seattle,
    Sheffield*, St. Albans, Sydney, Vancouver, Wakefield*, Washington*, Wellington*, Winchester, York*""",
    "country": """
    Argentina, Australia, Belgium, Brazil, Canada, Chile, Denmark, Egypt, Finland, Ghana, Iceland, India,
    Ireland, Italy, Japan, Jordan*, Kenya, Mexico, New Zealand, Norway, Peru, Portugal, Saudi Arabia,
    Scotland, Sweden, Thailand, Turkey, Uganda, Vietnam, Wales""",
    "region": """
    Cornwall, Cumbria, Dakota, Devon, Galloway, Kent, Montana, Munster, Nebraska, Norfolk,
    Northumberland, Ontario, Oregon, Queensland, Somerset, Suffolk, Texas, Tuscany, Ulster, Victoria*,
    Yorkshire""",
    "brand": """
    Altavar, Apple*, Brightmoor, Cendrix, Corvane, Dunmere, Elbright, Ford*, Fenwick & Lowe, Glaxwell,
    Halcyon, Ironbridge, Jarvis*, Kestrel, Lumeria, Marlin, Northgate, Oakhurst, Orange*, Oxbow,
    Pallister, Philips*, Quorum, Redstone, Santander*, Shell*, Silverline, Stratos, Tarnex, Trident,
    Umbria Foods, Velmora, Virgo, Westbrook, Xandria, Zephyr""",
    "river": """
    Avon, Clyde, Derwent, Hudson*, Mersey, Ouse, Potomac, Severn, Shannon, Tamar, Thames, Trent, Tweed,
    Tyne, Wye""",
}

RULES = {
    "per": """6x {first} {last}
    2x {last}
    {first}
    {first} {letter} {last}
    {letter} {last}
    {first} {last} - {last}
    {first} {particle} {last}""",
    "per_f": """4x {first_f} {last}
    {first_f}""",
    "per_m": """4x {first_m} {last}
    {first_m}""",
    "per_full": """{first} {last}
    {first} {letter} {last}""",
    "per_last": "{last}",
    "first": """{first_f}
    {first_m}""",
    "particle": "2x de\nvan\nvan der\nvon\nde la",
    "letter": "A.\nB.\nC.\nD.\nE.\nF.\nG.\nH.\nJ.\nK.\nL.\nM.\nN.\nP.\nR.\nS.\nT.\nW.",
    "loc": """5x {city}
    2x {country}
    2x {region}
    {loc_place}""",
    "loc_city": "{city}",
    "loc_land": "2x {country}\n{region}",
    "loc_river": "{river}",
    "loc_place": """{last} Street
    {last} Square
    Lake {last}
    Mount {last}
    Port {last}
    {city} Road
    St. {first} Island
    North {region}""",
    "org": """3x {company}
    {agency}
    {school}
    {brand}""",
    "org_firm": "4x {brand}\n3x {company}",
    "org_full": "{company}\n{school}\n{agency}",
    "org_school": "{school}",
    "org_office": "{agency}",
    "org_team": """3x {city}
    {city} United
    {city} Rovers
    {city} Wanderers
    FC {city}
    {last} Athletic""",
    "company": """2x {last} {suffix}
    {last} & {last}
    {brand} {suffix}
    {city} {sector}
    {last} {sector}
    Bank of {city}
    {first} {last} {suffix}""",
    "suffix": "Ltd\nInc\nGroup\n& Sons\nHoldings\nPartners\nBrothers",
    "sector": "Airways\nSteel\nInsurance\nFoods\nRailways\nBrewery\nTimes\nHerald\nTheatre\nHospital",
    "school": """University of {city}
    {city} University
    {last} College
    {city} Institute of Technology
    {first} {last} Foundation
    Royal {city} Orchestra""",
    "agency": """Ministry of {field}
    {city} City Council
    National {field} Agency
    {field} Commission
    {region} Police""",
    "field": "Transport\nHealth\nAgriculture\nJustice\nFisheries\nEnergy\nHousing\nDefence\nEducation",
    "any": "{per_full}\n{loc_place}\n{org_full}",
    "day": "Monday\nTuesday\nWednesday\nThursday\nFriday\nSaturday\nSunday",
    "month": "January\nMarch\nApril\nMay\nJune\nAugust\nOctober\nDecember",
    "number": "two\nthree\nfour\nseven\ntwelve\n18\n25\n40\n120\n300\n2,500",
    "year": "1894\n1923\n1957\n1968\n1984\n1999\n2007\n2016\n2021",
    "age": "19\n27\n34\n41\n46\n52\n63\n78",
    "job": """doctor
    nurse
    baker
    carpenter
    lawyer
    novelist
    pianist
    goalkeeper
    historian
    fisherman
    violinist
    chemist
    councillor""",
    "people": "Germans\nCatholics\nEuropeans\nVikings\nteachers\nfarmers\nstudents\nnurses\nsailors",
    "demonym": "German\nSpanish\nDutch\nEuropean\nScottish\nIrish\nFrench\nSwedish\nAmerican",
    "event": """Second World War
    Olympic Games
    Easter holidays
    Cold War
    World Cup
    Christmas market
    Great Depression""",
    "thing": "callback\nharbour\nlibrary\nmuseum\nstation\nfactory\nhospital\ncathedral\nschool\ncastle\nprison",
    "topic": """rents
    taxes
    wages
    fishing
    school meals
    the new motorway
    night trains
    clean water
    cheap housing""",
    "subject": """{per}
    {per}
    the {job} {per}
    Mr {per_last}
    Mrs {per_last}
    Professor {per_last}
    {per} , {age} ,
    {per} , a {job} from {loc_city} ,
    {org_firm}
    {org}""",
    "sentence": """8x {Core} .
    {per} {said} : " {Core} . "
    " {Core} , " {said} {per} .
    " {Core} , " {said} {per} of {org} .
    {Core} , {per} told {org} .
    On {day} , {core} .
    In {month} , {core} .
    In {loc} , {core} .
    According to {org} , {core} .
    According to {per} , {core} .
    {Core} , and {core} .
    {Core} , but {core} .
    {loc_city} ( {org} ) - {Core} .
    2x {Plain} .""",
    "said": "said\nadded\nwrote\nexplained\ninsisted",
    "core": """{subject} has moved from {loc_city} to {loc_city}
    {subject} arrived in {loc} late on {day}
    {subject} blamed {subject} for the delay
    {subject} refused to talk about {topic}
    {subject} will open a {thing} in {loc} next {month}
    {subject} sold the old {thing} to {org_firm} for {number} million pounds
    {per} was born in {loc} in {year} and studied at {org_school}
    {per} married {per} in {loc_city}
    {per} , who grew up in {loc} , now works for {org}
    {per} left {org} after {number} years
    {per} and {per} met in {loc} during the {event}
    {per_f} and her brother {per_m} run a small {thing} near {loc_city}
    the novel was written by {per} and printed in {loc_city}
    nobody in {loc} had heard of {per}
    nobody at {org_firm} had heard of {per}
    Judge {per_last} sent the man to prison for {number} years
    Captain {per_last} brought the ship safely back to {loc_city}
    {per_last} scored twice as {org_team} beat {org_team}
    {org_team} drew with {org_team} on {day}
    {org_team} won {number} - 1 in {loc_city}
    {org_team} signed {per} from {org_team}
    fans of {org_team} travelled to {loc_land} by bus
    the coach of {org_team} , {per} , resigned
    shares in {org_firm} fell after {per} stepped down
    {org_firm} will close its plant in {loc} and cut {number} jobs
    {org_firm} and {org_firm} plan to merge
    {org_firm} hired {per} as its new chairman
    workers at {org_firm} went on strike in {loc}
    an engineer at {org_firm} found the fault
    the board of {org} met in {loc_city} on {day}
    the mayor of {loc_city} thanked {per} for the gift
    the road between {loc_city} and {loc_city} is closed
    the train from {loc_city} was late again
    the flight to {loc_land} was cancelled because of snow
    heavy rain is expected in {loc} and {loc}
    prices in {loc} rose faster than in {loc}
    the president of {loc_land} will visit {loc_land} in {month}
    voters in {loc} rejected the plan by {number} votes
    {number} people were hurt when a bus overturned near {loc}
    the {loc_river} burst its banks at {loc_city}
    the {demonym} ambassador to {loc_land} met {per}
    researchers at {org_school} studied {topic} in {loc}
    {org_school} gave a prize to {per}
    {org_office} warned people in {loc} not to swim
    {org_office} fined {org_firm} for polluting the {loc_river}
    a spokesman for {org_office} did not want to comment
    a letter from {per} to {per} was found in the {thing}
    a lorry from {org_firm} blocked the road to {loc} for {number} hours
    a man called {per_last} sold his shares in {org_firm}
    you can see {loc_land} from here on a clear day
    the painter {per} never returned to {loc}
    the statue of {per} stands in front of the {thing}
    there has been much talk about {any} lately
    the film is about {any}
    she wrote her first recorder about {any}
    {any} is in the news again
    I dreamt of {any} last night
    {per} asked {per_last} whether {org_firm} would pay
    {loc} is smaller than {loc_land}
    {loc} has been without power since {day}
    {per_last} 's lawyer called the charges against him absurd
    {org_firm} 's profits doubled in {loc_land}
    {loc_city} 's oldest {thing} burned down
    {per} 's daughter {per_f} lives in {loc}
    thousands marched through {loc_city} against {org_office}""",
    "plain": """The {demonym} {job} sold his {thing} before the {event}
    On {day} the {people} of the village met to talk about {topic}
    The {event} changed the lives of many {people}
    Apple juice and orange cake were served on {day}
    The baker gave the young cook a rose and a stone
    Will you mark the homework before {month}
    A shell lay on the beach next to a small brook
    {number} {people} learned {demonym} last {month}
    God Save the King was played at the {thing}
    Mother says that Father Christmas is a {job}
    The Prime Minister spoke about {topic} on {day}
    Turkey and bush meat are no longer sold in the market
    Hazel trees and olive oil are both good business
    Most {people} celebrate Easter and Christmas at home
    Grace was said before the meal , and nobody spoke of {topic}
    The Internet and the Bible were discussed by {number} {people}
    Bath towels cost less in {month} , the {job} said
    Reading aloud helps children more than {topic} , said the {job}
    Dr. Who and the Bank Holiday were on the front page
    Hope and joy came back to the {thing} in {month}""",
}

ENGLISH = Language.written("en", NAMES, RULES)
